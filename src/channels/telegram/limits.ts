/**
 * What calls count against, as Telegram publishes it. Pure. Invariant: who keeps to these is never told to wait.
 */
import type { RateLimit } from "../ports.js";
import { isGroup, type TelegramPart } from "./part.js";

/** Telegram counts when a call arrives, we when it leaves: windows are longer by what the way may vary. */
const SLACK_MS = 100;

/** The narrowest last. An album counts for each of its files, but is one message of its chat. */
export function limitsOf(part: TelegramPart): RateLimit[] {
  const cost = part.kind === "album" ? part.files.length : 1;
  const limits: RateLimit[] = [
    { bucket: "bot", count: 30, perMs: 1_000 + SLACK_MS, cost },
    { bucket: `chat:${part.chat}`, count: 1, perMs: 1_000 + SLACK_MS, cost: 1 },
  ];
  if (isGroup(part.chat)) limits.push({ bucket: `group:${part.chat}`, count: 20, perMs: 60_000 + SLACK_MS, cost });
  return limits;
}
