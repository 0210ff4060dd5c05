/**
 * `nanogate pairing`: who waits to talk to a bot, who may, and what the operator decides about it. It works beside a running
 * gateway and without one. Invariant: each decision is one step in Redis, which also sends the person's welcome on its way;
 * whoever owns the account delivers it.
 */
import { randomUUID } from "node:crypto";
import { decisionText, revokedText } from "../agent/commands/pairing-texts.js";
import { hasOwners } from "../channels/policy.js";
import type { Paired, PairingDecision, PairingRequest, PairingStore } from "../channels/ports.js";
import { findWorkspace } from "../workspace/workspace.js";
import { openConfig } from "./open.js";
import { openRedisView } from "./open-redis.js";
import type { AnswerOptions } from "./options.js";
import { fail, note, oneLine, say, sayJson, sayTable, span } from "./output.js";

type Verdict = "approve" | "deny";

/** Runs `work` over a workspace that somebody has used; null where nobody has. */
async function inWorkspace<T>(options: AnswerOptions, work: (pairings: PairingStore) => Promise<T>): Promise<T | null> {
  const opened = await openConfig(options);
  const { config } = opened.loaded;
  const workspace = await findWorkspace(config.workspace);
  if (workspace === null) return null;
  return openRedisView(opened, workspace.id, (view) => work(view.pairings(hasOwners(config.channels))));
}

/** Prints the codes that wait and the people who are paired. */
export async function pairingListCommand(options: AnswerOptions): Promise<number> {
  const look = async (pairings: PairingStore) => ({
    waiting: await pairings.pending(),
    paired: await pairings.paired(),
  });
  const { waiting, paired } = (await inWorkspace(options, look)) ?? { waiting: [], paired: [] };
  if (options.json === true) sayJson({ waiting, paired });
  else if (waiting.length + paired.length === 0) note("Nobody waits to be paired, and nobody is paired.");
  else sayTable([["CHANNEL", "USER", "CODE", "STATE"], ...waiting.map(waitingRow), ...paired.map(pairedRow)]);
  return 0;
}

function waitingRow({ channel, senderId, code, leftMs }: PairingRequest): string[] {
  return [channel, senderId, code, `waits, ${span(leftMs)} left`].map(oneLine);
}

function pairedRow({ channel, senderId, isOwner, sinceMs }: Paired): string[] {
  const since = `since ${new Date(sinceMs).toISOString().slice(0, 10)}`;
  return [channel, senderId, "", `paired ${since}${isOwner ? ", owner" : ""}`].map(oneLine);
}

/** Lets in whoever got the code. */
export function pairingApproveCommand(code: string, options: AnswerOptions): Promise<number> {
  return decide("approve", code, options);
}

/** Sends whoever got the code away. */
export function pairingDenyCommand(code: string, options: AnswerOptions): Promise<number> {
  return decide("deny", code, options);
}

async function decide(verdict: Verdict, code: string, options: AnswerOptions): Promise<number> {
  const attempt = { verdict, code, by: `cli:${process.getuid?.() ?? "local"}`, call: randomUUID() };
  const made = await inWorkspace(options, (pairings) => pairings.decide(attempt));
  const decision: PairingDecision = made ?? { kind: "unknown" };
  const text = oneLine(decisionText(verdict, decision));
  if (decision.kind !== "done") return fail(text, "`nanogate pairing list` shows the codes that wait.");
  const { channel, senderId, isOwner } = decision;
  if (options.json === true) sayJson({ channel, senderId, isOwner, verdict });
  else say(text);
  return 0;
}

/** Takes a pairing back. */
export async function pairingRevokeCommand(channel: string, senderId: string, options: AnswerOptions): Promise<number> {
  const wasPaired = (await inWorkspace(options, (pairings) => pairings.revoke(channel, senderId))) === true;
  const text = oneLine(revokedText({ channel, senderId }, wasPaired));
  if (!wasPaired) return fail(text, "`nanogate pairing list` shows who is paired.");
  if (options.json === true) sayJson({ channel, senderId, revoked: true });
  else say(text);
  return 0;
}
