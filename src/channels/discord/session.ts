/**
 * One life of the channel, from its start to its stop: the connection, the way in, the way out, put together. It does nothing
 * itself. Invariants: the library is loaded here and not before; nothing outlives `close`.
 */
import type { CommandSpec } from "../../commands.js";
import type { ChannelContext, LiveView } from "../channel.js";
import { AnswerDesk } from "./answers.js";
import { IdentifyBudget } from "./budget.js";
import { sweepButtons } from "./buttons.js";
import type { DiscordDeps } from "./deps.js";
import { openLink } from "./link.js";
import { createLive } from "./live.js";
import { Marks } from "./marks.js";
import { publishMenu } from "./menu.js";
import type { DiscordPart } from "./parts.js";
import { Places } from "./places.js";
import { Reception } from "./reception.js";
import { openRest } from "./rest.js";
import { Sender } from "./sender.js";
import { Spool } from "./spool.js";
import { accountOf, botIdOf } from "./token.js";
import type { Vitals } from "./vitals.js";

export interface Session {
  sender: Sender;
  live: LiveView<DiscordPart>;
  /** Ends everything; what was not stored is spooled. */
  close(): Promise<void>;
}

interface Surroundings {
  context: ChannelContext;
  vitals: Vitals;
  commands: readonly CommandSpec[];
  /** Aborts when the channel is stopped while it still connects. */
  signal: AbortSignal;
}

/** Connects the bot. Throws `DISCORD_…` and `BUS_UNAVAILABLE`, and then nothing of it is left. */
export async function openSession(deps: DiscordDeps, around: Surroundings): Promise<Session> {
  const { config, token, clock, wallMs } = deps;
  const { context, vitals, commands, signal } = around;
  const { memory, media, logger } = context;
  const account = accountOf(token);
  const library = await import("discord.js");
  const marks = await Marks.load(memory, logger);
  const { spool, entries } = await Spool.open({ folder: deps.spoolFolder, name: account, logger });
  const rest = openRest({ library, apiRoot: config.apiRoot, token, clock });
  const desk = new AnswerDesk({ rest, clock });
  const places = new Places(rest);
  const bot = { id: botIdOf(token) ?? "", account };
  const reception = new Reception({ ...deps, context, rest, places, marks, desk, spool, entries, commands, bot });
  const closeRest = async () => {
    await reception.close();
    await spool.close();
    rest.close();
  };
  const budget = new IdentifyBudget({ memory, rules: deps.timing.identify, wallMs });
  const onIdentified = (ready: unknown) => {
    const applicationId = reception.identified(ready);
    reception.inBackground("the menu of commands could not be published", () =>
      publishMenu(rest, applicationId, commands),
    );
  };
  const onEvent = (t: string, d: unknown) => reception.take(t, d);
  const link = await openLink({
    ...{ library, rest, apiRoot: config.apiRoot, token, budget, vitals, clock, logger, signal, onIdentified, onEvent },
  }).catch(async (error: unknown) => {
    await closeRest();
    throw error;
  });
  reception.inBackground("old buttons could not be swept", () => sweepButtons({ memory, wallMs }));
  const isDirect = (channelId: string) => places.isDirect(channelId);
  const onSent = (channelId: string, begunMs: number) => {
    vitals.sent(begunMs);
    if (!isDirect(channelId)) return;
    // Also a stranger's who was told a code: once paired, what they write meanwhile must be found.
    reception.inBackground("a direct chat could not be noted", () => marks.noteDirect(channelId));
  };
  const sender = new Sender({ rest, media, memory, desk, isDirect, clock, wallMs, onSent });
  const { streaming: isStreaming, editIntervalMs, reaction } = config;
  const live = createLive({ rest, sender, desk, isStreaming, editIntervalMs, reaction, logger });
  const close = async () => {
    await link.close();
    await closeRest();
  };
  return { sender, live, close };
}
