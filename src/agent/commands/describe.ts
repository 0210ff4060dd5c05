/**
 * The texts of commands that only tell: `/help` and `/status`. They change nothing. Invariant: no secret and nothing of
 * another session is in them.
 */
import type { SessionKey } from "../../bus/messages.js";
import type { Upkeep } from "../../bus/ports.js";
import { COMMANDS } from "../../commands.js";
import type { SessionManager } from "../../session/manager.js";

export interface DescribeDeps {
  version: string;
  /** What a person calls the configured model. */
  modelLabel: () => string;
  sessions: SessionManager;
  upkeep: Upkeep;
  /** How long this process runs, ms. */
  uptimeMs: () => number;
}

function help(): string {
  return COMMANDS.map(({ name, args, summary }) => `/${name}${args === "" ? "" : ` ${args}`} — ${summary}`).join("\n");
}

function duration(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

async function status(deps: DescribeDeps, key: SessionKey): Promise<string> {
  const [view, depths] = await Promise.all([deps.sessions.readSessionFile(key), deps.upkeep.depths()]);
  const { workers, running, scheduled, parked, waitingForSlot } = depths;
  return [
    `nanogate ${deps.version}, up ${duration(deps.uptimeMs())}`,
    `Model: ${deps.modelLabel()}`,
    `Session ${key}: ${view?.messages.length ?? 0} rows`,
    `Workers: ${workers}. Sessions running: ${running}, ready: ${scheduled - waitingForSlot}, waiting for a slot: ${waitingForSlot}, parked: ${parked}`,
  ].join("\n");
}

export function createDescribe(deps: DescribeDeps): (command: "help" | "status", key: SessionKey) => Promise<string> {
  return async (command, key) => (command === "help" ? help() : status(deps, key));
}
