/**
 * Discord as a channel: puts its parts together, starts and stops them. Everything it does stands in its neighbours.
 * Invariants: the library is loaded only when the channel starts; after `stop` nothing of it runs; what was not stored then
 * is in the spool.
 */
import { COMMANDS } from "../../commands.js";
import { NanogateError } from "../../errors.js";
import type { ChannelContext, ChannelHealth, OutboxChannel } from "../channel.js";
import { DeliveryError } from "../channel.js";
import type { DiscordDeps } from "./deps.js";
import { TYPING_EVERY_MS } from "./live.js";
import { DISCORD } from "./name.js";
import { type DiscordPart, partsOf } from "./parts.js";
import { openSession, type Session } from "./session.js";
import { accountOf, checkToken } from "./token.js";
import { Vitals } from "./vitals.js";

/** A life that began, whether or not it has come to a session yet. */
interface Life {
  ending: AbortController;
  opening: Promise<Session>;
}

/** Discord knows a nonce for some minutes; this is well within them. */
const NONCE_KNOWN_MS = 60_000;

/** A bot on Discord. Never throws: a wrong token is said when it starts. */
export function createDiscordChannel(deps: DiscordDeps): OutboxChannel<DiscordPart> {
  const vitals = new Vitals({ clock: deps.clock, patience: deps.timing.patience });
  let life: Life | null = null;
  let session: Session | null = null;
  const running = (): Session => {
    if (session === null)
      throw new DeliveryError({ kind: "transient", retryAfterMs: null }, "Discord is not connected");
    return session;
  };
  return {
    name: DISCORD,
    repeatableMs: NONCE_KNOWN_MS,
    account: accountOf(deps.token),
    start: async (context: ChannelContext) => {
      const ending = new AbortController();
      vitals.starting();
      try {
        checkToken(deps.token);
        const opening = openSession(deps, { context, vitals, commands: COMMANDS, signal: ending.signal });
        life = { ending, opening };
        const opened = await opening;
        if (!ending.signal.aborted) session = opened;
      } catch (error) {
        if (error instanceof NanogateError && !ending.signal.aborted)
          vitals.fail(error, { isPermanent: isPermanent(error) });
        throw error;
      }
    },
    stop: async () => {
      const ended = life;
      life = null;
      session = null;
      ended?.ending.abort();
      // Whoever started it was told of the failure.
      const opened = await ended?.opening.catch(() => null);
      await opened?.close();
      vitals.stopped();
    },
    health: (): ChannelHealth => vitals.health(),
    parts: partsOf,
    send: async (request) => running().sender.send(request),
    limits: (message) => [
      { bucket: "bot", count: 40, perMs: 1000, cost: 1 },
      // Discord tells a channel's own limit with each answer; this one only names what a wait is for.
      { bucket: `chat:${message.threadId ?? message.chatId}`, count: 10, perMs: 1000, cost: 1 },
    ],
    live: {
      workingEveryMs: TYPING_EVERY_MS,
      way: (message) => session?.live.way(message) ?? "none",
      intervalMs: () => deps.config.editIntervalMs,
      edit: async (platformId, request) => running().live.edit(platformId, request),
      draft: async (streamId, request) => running().live.draft(streamId, request),
      remove: async (platformId, message, signal) => running().live.remove(platformId, message, signal),
      working: async (phase, message, signal) => session?.live.working(phase, message, signal),
    },
  };
}

function isPermanent({ code }: NanogateError): boolean {
  return code === "DISCORD_TOKEN_INVALID" || code === "DISCORD_INTENTS" || code === "DISCORD_PROTOCOL";
}
