/**
 * Slash commands and presses of buttons. Discord waits three seconds for a first word, so they do not stand behind messages
 * whose files are fetched. Invariants: whoever may not gets a private no, in words that say why; a press takes its buttons
 * away only when it is stored; what could not be stored is told to whoever did it.
 */

import type { InboundMessage } from "../../bus/messages.js";
import type { CommandSpec } from "../../commands.js";
import { hasCode } from "../../errors.js";
import type { Admission, ChannelContext, Knock } from "../channel.js";
import type { Clock } from "../clock.js";
import type { AnswerDesk } from "./answers.js";
import { pressedValue } from "./buttons.js";
import { aliasesOf, chatIdsOf, type Place, routeOf, type Self, whereOf } from "./hear.js";
import type { Intake } from "./intake.js";
import { DISCORD } from "./name.js";
import type { Places } from "./places.js";
import type { Rest } from "./rest.js";
import { EPHEMERAL_FLAG, interactionShape, type WireInteraction, type WireUser } from "./wire.js";

export interface InteractDeps {
  context: ChannelContext;
  rest: Rest;
  places: Places;
  desk: AnswerDesk;
  intake: Pick<Intake, "addWork">;
  commands: readonly CommandSpec[];
  self: () => Self;
  clock: Clock;
  /** The time of day, ms since the epoch. */
  wallMs: () => number;
  signal: AbortSignal;
}

const COMMAND = 2;
const PRESS = 3;
/** First words to an interaction. */
const REPLY = 4;
const DEFER_REPLY = 5;
const DEFER_UPDATE = 6;
const UPDATE = 7;
/** How long the first word may wait for what became of it, ms. */
const PATIENCE_MS = 1800;
const NOT_STORED = "That could not be taken in just now. Please try again in a moment.";

/** Carries out an INTERACTION_CREATE; returns when its first word was said and it is stored. Throws `RestError`, `ZodError`. */
export async function interact(deps: InteractDeps, d: unknown): Promise<void> {
  const interaction = interactionShape.parse(d);
  const user = interaction.member?.user ?? interaction.user;
  if (user === null || user === undefined || ![COMMAND, PRESS].includes(interaction.type)) return;
  const { channel_id, guild_id, channel } = interaction;
  const place = await deps.places.of({
    channel_id,
    guild_id,
    channel_type: channel?.type,
    parent_id: channel?.parent_id,
  });
  if (place === null) return;
  const visit: Visit = { interaction, user, place };
  if (interaction.type === COMMAND) await command(deps, visit);
  else await press(deps, visit);
}

interface Visit {
  interaction: WireInteraction;
  user: WireUser;
  place: Place;
}

function knockOf({ self }: InteractDeps, { interaction, user, place }: Visit): Knock {
  const { id, channel_id: channelId, type } = interaction;
  const isPress = type === PRESS;
  const chatIds = chatIdsOf(channelId, place);
  return {
    senderId: user.id,
    aliases: aliasesOf(user),
    author: user.bot === true ? "bot" : "person",
    scene:
      place.kind === "direct"
        ? { kind: "direct" }
        : { kind: "group", chatIds, isMentioned: false, isReplyToBot: isPress, isCommand: !isPress },
    messageId: id,
    route: routeOf(channelId, place, { self: self(), messageId: interaction.message?.id ?? id }),
  };
}

function inboundOf(
  deps: InteractDeps,
  visit: Visit,
  what: Pick<InboundMessage, "kind" | "content" | "isOwner">,
): InboundMessage {
  const { interaction, user, place } = visit;
  return {
    id: interaction.id,
    channel: DISCORD,
    senderId: user.id,
    ...whereOf(interaction.channel_id, place),
    ...what,
    timestamp: new Date(deps.wallMs()).toISOString(),
    media: [],
    role: "user",
    route: knockOf(deps, visit).route,
    metadata: {},
  };
}

async function command(deps: InteractDeps, visit: Visit): Promise<void> {
  const { interaction } = visit;
  const asked = judge(deps, visit);
  const early = await within(deps, asked);
  const isLate = early === null;
  if (isLate) await callback(deps, interaction, DEFER_REPLY, { flags: EPHEMERAL_FLAG });
  const admission = early ?? (await asked);
  if (admission.kind === "refused") {
    if (isLate) return rewrite(deps, interaction, { content: admission.why });
    return callback(deps, interaction, REPLY, privately(admission.why));
  }
  if (!isLate) await callback(deps, interaction, DEFER_REPLY, { flags: EPHEMERAL_FLAG });
  deps.desk.expect(interaction);
  const { name, options } = interaction.data ?? {};
  const args = (options ?? []).map(({ value }) => String(value ?? "").trim()).filter((each) => each !== "");
  const content = [`/${name ?? ""}`, ...args].join(" ");
  const inbound = inboundOf(deps, visit, { kind: "message", content, isOwner: admission.isOwner });
  const work = async () => {
    if (await accepted(deps, inbound)) return;
    await rewrite(deps, interaction, { content: NOT_STORED });
  };
  // What goes round the queue goes round this one too: a stop waits for no download.
  const isAround = deps.commands.some((spec) => spec.name === name && spec.way === "around");
  if (isAround) await work();
  else deps.intake.addWork(interaction.channel_id, work);
}

async function press(deps: InteractDeps, visit: Visit): Promise<void> {
  const { interaction } = visit;
  const outcome = pressed(deps, visit);
  const early = await within(deps, outcome);
  if (early === null) await callback(deps, interaction, DEFER_UPDATE, undefined);
  const { words } = early ?? (await outcome);
  if (early === null) {
    if (words === null) await rewrite(deps, interaction, { components: [] });
    else await followUp(deps, interaction, words);
  } else if (words === null) await callback(deps, interaction, UPDATE, { components: [] });
  else await callback(deps, interaction, REPLY, privately(words));
}

/** Words for whoever did it alone. */
function privately(content: string) {
  return { content, flags: EPHEMERAL_FLAG, allowed_mentions: { parse: [] } };
}

/** Null words: it is stored. */
async function pressed(deps: InteractDeps, visit: Visit): Promise<{ words: string | null }> {
  const admission = await judge(deps, visit);
  if (admission.kind === "refused") return { words: admission.why };
  const content = await pressedValue(deps.context.memory, visit.interaction.data?.custom_id ?? "");
  if (content === null || content === "") return { words: "This button is too old." };
  const inbound = inboundOf(deps, visit, { kind: "callback", content, isOwner: admission.isOwner });
  return { words: (await accepted(deps, inbound)) ? null : NOT_STORED };
}

async function judge(deps: InteractDeps, visit: Visit): Promise<Admission> {
  try {
    const admission = await deps.context.admit(knockOf(deps, visit));
    return admission.kind === "refused" ? { kind: "refused", why: `Not allowed: ${admission.why}.` } : admission;
  } catch (error) {
    if (!hasCode(error, "BUS_UNAVAILABLE") && !hasCode(error, "BUS_OVERLOADED")) throw error;
    deps.context.logger.warn({ err: error, interaction: visit.interaction.id }, "nobody could be asked who may speak");
    return { kind: "refused", why: NOT_STORED };
  }
}

async function accepted({ context }: InteractDeps, inbound: InboundMessage): Promise<boolean> {
  try {
    await context.accept(inbound);
    return true;
  } catch (error) {
    context.logger.warn({ err: error, interaction: inbound.id }, "an interaction could not be stored");
    return false;
  }
}

/** What it gives, or null when that takes too long for a first word. */
async function within<T>({ clock, signal }: InteractDeps, work: Promise<T>): Promise<T | null> {
  const done = new AbortController();
  const limit = clock.sleep(PATIENCE_MS, AbortSignal.any([signal, done.signal])).then(() => null);
  try {
    return await Promise.race([work, limit]);
  } finally {
    done.abort();
  }
}

async function callback(
  { rest }: InteractDeps,
  { id, token }: WireInteraction,
  type: number,
  data: unknown,
): Promise<void> {
  const body = data === undefined ? { type } : { type, data };
  await rest.call({ method: "POST", path: `interactions/${id}/${token}/callback`, body, isOpen: true });
}

async function rewrite({ rest }: InteractDeps, interaction: WireInteraction, body: unknown): Promise<void> {
  const path = `webhooks/${interaction.application_id}/${interaction.token}/messages/@original`;
  await rest.call({ method: "PATCH", path, body, isOpen: true });
}

async function followUp({ rest }: InteractDeps, interaction: WireInteraction, content: string): Promise<void> {
  const path = `webhooks/${interaction.application_id}/${interaction.token}`;
  await rest.call({ method: "POST", path, body: privately(content), isOpen: true });
}
