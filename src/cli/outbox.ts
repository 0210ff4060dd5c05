/**
 * `nanogate outbox`: deliveries that failed for good or ended unknown, and what a person decides about them. It sends
 * nothing itself: whoever owns the account does. It works beside a running gateway and without one. Invariant: each
 * decision is one step in Redis; a part that was delivered is not sent again.
 */
import type { DeadLetter } from "../bus/delivery-ports.js";
import type { RedisView } from "../redis/view.js";
import { findWorkspace } from "../workspace/workspace.js";
import { openConfig } from "./open.js";
import { openRedisView } from "./open-redis.js";
import type { AnswerOptions } from "./options.js";
import { clip, fail, note, oneLine, say, sayJson, sayTable } from "./output.js";

const TEXT_LENGTH = 40;

/** Runs `work` over a workspace that somebody has used; null where nobody has. */
async function inWorkspace<T>(options: AnswerOptions, work: (view: RedisView) => Promise<T>): Promise<T | null> {
  const opened = await openConfig(options);
  const workspace = await findWorkspace(opened.loaded.config.workspace);
  return workspace === null ? null : openRedisView(opened, workspace.id, work);
}

/** Prints the dead letters. */
export async function outboxListCommand(options: AnswerOptions): Promise<number> {
  const letters = (await inWorkspace(options, (view) => view.outbox.deadLetters())) ?? [];
  if (options.json === true) sayJson(letters);
  else if (letters.length === 0) note("There are no dead letters.");
  else sayTable([["ID", "CHANNEL", "CHAT", "TRIES", "TEXT", "ERROR"], ...letters.map(letterRow)]);
  return 0;
}

function letterRow({ id, channel, chatId, attempts, text, error }: DeadLetter): string[] {
  return [id, channel, chatId, String(attempts), clip(oneLine(text), TEXT_LENGTH), error].map(oneLine);
}

/** Puts a dead letter back into its account's outbox. */
export async function outboxRetryCommand(id: string, options: AnswerOptions): Promise<number> {
  const isBack = await inWorkspace(options, (view) => view.outbox.retryDeadLetter(id));
  if (isBack !== true) return noLetter(id);
  if (options.json === true) sayJson({ id, retried: true });
  else say(`${oneLine(id)} is in the outbox again; whoever runs its channel sends what was not delivered.`);
  return 0;
}

/** Forgets a dead letter. */
export async function outboxDropCommand(id: string, options: AnswerOptions): Promise<number> {
  const isGone = await inWorkspace(options, (view) => view.outbox.dropDeadLetter(id));
  if (isGone !== true) return noLetter(id);
  if (options.json === true) sayJson({ id, dropped: true });
  else say(`${oneLine(id)} is dropped.`);
  return 0;
}

function noLetter(id: string): number {
  return fail(`There is no dead letter ${oneLine(id)}.`, "`nanogate outbox list` lists those there are.");
}
