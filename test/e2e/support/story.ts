/**
 * The story that every test of a death tells: a message with a tool call whose effect can be counted, its answer, and a
 * second message. It kills nothing itself; `storyFaults` reads what is left from all sides.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Client } from "./client.js";
import { fenceFaults, historyFaults } from "./history.js";
import type { Stage } from "./stage.js";
import { wireFaults } from "./wire.js";

/** Each run of this call puts one more `+` into the file. */
export const COUNTED_CALL = 'call edit_file {"path":"counted.txt","old_text":"end","new_text":"+end"}';

/** Puts the file of `COUNTED_CALL` into the workspace. */
export async function seedCounter(stage: Stage): Promise<void> {
  await mkdir(stage.workspace, { recursive: true });
  await writeFile(path.join(stage.workspace, "counted.txt"), "end");
}

/** How often `COUNTED_CALL` was carried out. */
export async function countedRuns(stage: Stage): Promise<number> {
  return (await readFile(path.join(stage.workspace, "counted.txt"), "utf8")).split("+").length - 1;
}

/** What is wrong with what a client saw and with its session's file; empty after any death that was survived. */
export async function storyFaults(stage: Stage, client: Client): Promise<string[]> {
  const lines = await stage.lines(`websocket:${client.chatId}`);
  return [...client.faults, ...wireFaults(client.events), ...historyFaults(lines), ...fenceFaults(lines)];
}

/** Ids of messages whose turn has ended, with the outcome, in order. */
export function endsOf(client: Client): string[] {
  return client.events
    .filter((event) => event.event === "turn_end")
    .map((event) => `${event.message_ids?.join("+")}: ${event.outcome}`);
}
