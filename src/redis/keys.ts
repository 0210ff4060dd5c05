/**
 * Every Redis key and pub/sub channel of nanogate: its name, meaning and lifetime. The names are handed to the Lua
 * scripts from here, so there is no second list. Invariant: all keys of a workspace carry one hash tag, the workspace
 * id, so that a script may touch several of them and two workspaces never share one.
 */
import { createHash } from "node:crypto";

/** Second half of a key's name; what follows it (`+ …`) is the part that varies. */
export const KEY_NAMES = {
  /** hash {run, n, reaped, away}: run id last seen, boot number; ms of the last reap, and of one after a gap. For ever. */
  boot: "boot",
  /** string + inbound key: `m:<number>`, or `stop:<count>` for a stop. 48 h. */
  dedupe: "dd:",
  /** zset + session: messages by number (see scripts/_common.lua). Until settled. */
  mailbox: "mb:",
  /** hash + session: state and all that belongs to it (see scripts/_common.lua). 30 days after its last use. */
  session: "ss:",
  /** zset session → due since (ms): scheduled sessions. */
  sched: "sched",
  /** zset session → until (ms): held sessions. */
  lease: "lease",
  /** zset session → wake at the latest (ms): parked sessions. */
  parked: "parked",
  /** zset session → until (ms): slots in use, and slots kept for the one called next. */
  turns: "turns",
  /** zset session → since (ms): sessions that wait for a slot. */
  waiting: "waiting",
  /** zset owner → until (ms): processes that may hold leases. */
  owners: "owners",
  /** zset owner → until (ms): live workers. */
  workers: "workers",
  /** string + inbound key: TurnResult. 1 h. Also the channel it is announced on. */
  result: "res:",
  /** string + session + `:` + wait id: the answer to a parked call. 48 h. */
  answer: "wait:",
  /** string + outbound id: it was put out once. 48 h. */
  sent: "sent:",
  /** hash + outbound id: part → receipt. 48 h; as long as there is a dead letter of this id. Also + turn id: what is shown of its streams. */
  receipt: "rc:",
  /** stream + account: what must be delivered. Until consumed. */
  outbox: "ob:",
  /** hash + account {owner, until, fence}: who delivers for an account. */
  accountOwner: "ao:",
  /** hash outbound id → {letter, account, body}, a dead letter. Until a person decides about it. */
  deadOut: "dl:out",
  /** string + call: a decision about a dead letter was carried out. 1 minute. */
  deadCall: "dl:call:",
  /** hash inbound key → what was given up and why. Until a person drops it. */
  deadIn: "dl:in",
  /** stream + account + `:` + chat: the chat's events, numbered. 7 days after the last. */
  events: "ce:",
  /** hash + account + `:` + chat {seq, ep, es}: newest number, epoch, where each epoch began. 30 days. */
  chat: "cm:",
  /** string + account + `:` + chat: the identity a chat belongs to. 400 days after its last use. */
  chatOwner: "co:",
  /** string + digest of a one-time token: `<boot number> <client id>`. 300 s, or until it is used. */
  token: "tk:",
  /** zset digest → until (ms): one-time tokens that may be alive, counted. 300 s after the last was issued. */
  tokens: "tks",
  /** string + call: the client id that a call got for a token. 1 minute. */
  tokenCall: "tk-call:",
  /** hash channel + `:` + sender → {since, owner}: who may speak by pairing. Until revoked. */
  paired: "pr:in",
  /** string: the first ever paired, as channel + `:` + sender. For ever. */
  pairedFirst: "pr:first",
  /** hash + code {channel, sender, expires, state, welcome}: a pairing code. A day longer than it may be used. */
  pairingCode: "pr:code:",
  /** zset code → until (ms): codes that wait for an owner. */
  pairingWaiting: "pr:waiting",
  /** string + what was told: when that telling began (ms). 1 minute for a code, 10 for "too many wait". */
  pairingTold: "pr:told:",
  /** string + channel + `:` + sender: an owner said no. 1 h. */
  pairingDenied: "pr:no:",
  /** string + who tries, or `*` for all: failed tries. 10 minutes after the first, and after the last that was allowed. */
  pairingTries: "pr:tries:",
  /** string + call: the answer to a decision. 5 minutes. */
  pairingCall: "pr:call:",
  /** zset + channel, chat and bot: message → when (ms): what another bot said. As long as the budget's time. */
  botBudget: "bb:",
  /** string + channel, chat and bot: it was logged that the budget is spent. As long as the budget's time. */
  botSpent: "bb-said:",
  /** zset + account, bucket and window: calls (µs). As long as the window. */
  limit: "rl:",
  /** string + account and bucket: the platform asked to leave it alone. As long as it asked. */
  limitParked: "rl-parked:",
  /** hash + account: what its channel must know again after a restart. Until it is forgotten. */
  accountMemory: "am:",
  /** channel + account + `:` + chat: events as they are appended. */
  eventFeed: "ev:",
  /** channel + address: events that may be lost. */
  live: "live:",
  /** channel: session keys that were stopped. */
  hint: "hint",
} as const;

export type KeyName = keyof typeof KEY_NAMES;

/** Names of one workspace's keys. */
export interface Keys {
  /** `<prefix>:{<workspace id>}:` */
  readonly base: string;
  of(name: KeyName, rest?: string): string;
  /** BullMQ's own keys live below this prefix. */
  readonly queuePrefix: string;
}

export function createKeys(prefix: string, workspaceId: string): Keys {
  const base = `${prefix}:{${workspaceId}}:`;
  return { base, of: (name, rest = "") => base + KEY_NAMES[name] + rest.toWellFormed(), queuePrefix: `${base}bull` };
}

/** Job ids may hold no ":" and may not be all digits; a session key may hold anything. */
export function jobIdOf(sessionKey: string, wake: number): string {
  const hash = createHash("sha256").update(sessionKey).digest("base64url").slice(0, 16);
  return `s${hash}-${wake}`;
}
