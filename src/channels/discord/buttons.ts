/**
 * Buttons as Discord has them: rows of components whose id carries the value. A value that does not fit is kept in the
 * account's memory under a short name. It shows nothing. Invariant: a press gives the value back unchanged, also after a
 * restart and in another process.
 */
import { createHash } from "node:crypto";
import type { Button } from "../../bus/messages.js";
import type { AccountMemory } from "../ports.js";
import { DISCORD_LIMITS } from "./wire.js";

/** Begins the id of a button whose value is kept elsewhere. */
const KEPT = "kept:";
const MEMORY = "button:";
/** How long a value is kept, ms. */
const KEPT_MS = 30 * 86_400_000;

export interface ButtonDeps {
  memory: AccountMemory;
  /** The time of day, ms since the epoch. */
  wallMs: () => number;
}

/** The rows of a message, values that need it kept. Throws `BUS_UNAVAILABLE`. */
export async function componentsOf(
  deps: ButtonDeps,
  rows: ReadonlyArray<readonly Button[]>,
): Promise<Array<Record<string, unknown>>> {
  const seen = new Set<string>();
  const components: Array<Record<string, unknown>> = [];
  for (const row of rows) {
    const buttons: Array<Record<string, unknown>> = [];
    for (const button of row) {
      const custom_id = await idOf(deps, button, seen);
      seen.add(custom_id);
      buttons.push({ type: 2, style: 2, label: labelOf(button), custom_id });
    }
    if (buttons.length > 0) components.push({ type: 1, components: buttons });
  }
  return components;
}

function labelOf({ label, value }: Button): string {
  const text = [label, value].map((each) => each.trim()).find((each) => each !== "") ?? "•";
  if (text.length <= DISCORD_LIMITS.buttonLabel) return text;
  return `${text.slice(0, DISCORD_LIMITS.buttonLabel - 1).toWellFormed()}…`;
}

async function idOf(
  { memory, wallMs }: ButtonDeps,
  { value, label }: Button,
  seen: ReadonlySet<string>,
): Promise<string> {
  const meant = (value === "" ? label : value).toWellFormed();
  const isFit = meant !== "" && meant.length <= DISCORD_LIMITS.customId && !meant.startsWith(KEPT);
  if (isFit && !seen.has(meant)) return meant;
  // No two buttons of a message may have one id.
  const hash = createHash("sha256")
    .update(`${seen.has(meant) ? seen.size : ""} ${meant}`)
    .digest("base64url")
    .slice(0, 22);
  await memory.set(`${MEMORY}${hash}`, JSON.stringify({ value: meant, atMs: wallMs() }));
  return `${KEPT}${hash}`;
}

/** The value of a pressed button; null for one that is no longer known. Throws `BUS_UNAVAILABLE`. */
export async function pressedValue(memory: AccountMemory, customId: string): Promise<string | null> {
  if (!customId.startsWith(KEPT)) return customId;
  const kept = readKept(await memory.get(`${MEMORY}${customId.slice(KEPT.length)}`));
  return kept?.value ?? null;
}

/** Forgets the values of buttons that nobody will press any more. Throws `BUS_UNAVAILABLE`. */
export async function sweepButtons({ memory, wallMs }: ButtonDeps): Promise<void> {
  for (const [name, text] of await memory.list(MEMORY)) {
    const kept = readKept(text);
    if (kept === null || kept.atMs < wallMs() - KEPT_MS) await memory.forget(name);
  }
}

function readKept(text: string | null): { value: string; atMs: number } | null {
  const kept: unknown = text === null ? null : JSON.parse(text);
  if (typeof kept !== "object" || kept === null || !("value" in kept) || !("atMs" in kept)) return null;
  return typeof kept.value === "string" && typeof kept.atMs === "number"
    ? { value: kept.value, atMs: kept.atMs }
    : null;
}
