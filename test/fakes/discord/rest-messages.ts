/**
 * Messages over REST: read, send, change, remove, react, type. It knows neither HTTP nor limits. Invariant: nothing happens
 * before the channel, the permission and the form were found good, in this order, as Discord does it.
 */
import { type Channel, ChannelKind, type Denial, type Message, MessageFlag, MessageType } from "./model.js";
import { badField, Refusal } from "./refusal.js";
import { type Call, done, ok, param, type Reply, type Route } from "./routes.js";
import { isOlder } from "./snowflakes.js";
import { checkMessage } from "./validate.js";
import { messageWire } from "./wire.js";
import type { Draft } from "./world.js";

/** The channel of the path, if the bot may be there and do this. */
export function placeOf(call: Call, ...needs: Denial[]): Channel {
  const channel = call.world.channels.get(param(call, "channel"));
  if (channel === undefined) throw new Refusal(10003);
  if (channel.denied.has("view") || channel.parent?.denied.has("view")) throw new Refusal(50001);
  const isDenied = (need: Denial) => channel.denied.has(need) || channel.parent?.denied.has(need);
  if (needs.some(isDenied)) throw new Refusal(50013);
  return channel;
}

function messageOf(call: Call, channel: Channel): Message {
  const message = channel.messages.get(param(call, "message"));
  const isPrivate = ((message?.flags ?? 0) & MessageFlag.ephemeral) !== 0;
  if (message === undefined || isPrivate) throw new Refusal(10008);
  return message;
}

/** A message as this bot reads it over REST: the portal's switch counts, not the intents of a connection. */
export function shown(call: Call, message: Message): unknown {
  const readsContent = (call.settings.applicationFlags & ((1 << 18) | (1 << 19))) !== 0;
  return messageWire(message, { readsContent, bot: call.world.bot });
}

function list(call: Call): Reply {
  const channel = placeOf(call, "history");
  const { query } = call;
  const limit = Number(query.get("limit") ?? 50);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100)
    throw badField("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.");
  const [before, after] = [query.get("before"), query.get("after")];
  const all = [...channel.messages.values()].filter(
    ({ id, flags }) =>
      (flags & MessageFlag.ephemeral) === 0 &&
      (before === null || isOlder(id, before)) &&
      (after === null || isOlder(after, id)),
  );
  const page = after === null ? all.slice(-limit) : all.slice(0, limit);
  return ok(page.reverse().map((message) => shown(call, message)));
}

/** Where may be written at all. */
function checkWritable(channel: Channel): void {
  if (channel.kind === ChannelKind.forum || channel.kind === ChannelKind.voice) throw new Refusal(50008);
  if (channel.isLocked) throw new Refusal(channel.isArchived ? 50083 : 160005);
  if (channel.recipient?.refusesDms) throw new Refusal(50007);
}

/** What a form becomes as a message. Throws for one that is wrong. */
export function draftOf(call: Call, channel: Channel, isNew: boolean): Draft {
  const { body, files, settings } = call;
  checkMessage(body, files.length, isNew);
  if (files.some(({ bytes }) => bytes.length > settings.maxFileBytes)) throw new Refusal(40005);
  const content = typeof body.content === "string" ? body.content.trim() : "";
  const attachments = files.map((file) => call.world.attach(channel, file, call.origin));
  return {
    content,
    attachments,
    embeds: Array.isArray(body.embeds) ? body.embeds : [],
    components: Array.isArray(body.components) ? body.components : [],
    ...(body.allowed_mentions === undefined || body.allowed_mentions === null
      ? {}
      : { allowedMentions: body.allowed_mentions }),
    ...(typeof body.flags === "number" ? { flags: body.flags } : {}),
  };
}

function create(call: Call): Reply {
  const channel = placeOf(call, "send", ...(call.files.length > 0 ? (["attach"] as const) : []));
  checkWritable(channel);
  const { body, world } = call;
  const draft = draftOf(call, channel, true);
  const reference = referenceOf(call, channel);
  const nonce = typeof body.nonce === "string" || typeof body.nonce === "number" ? body.nonce : null;
  const known = nonce !== null && body.enforce_nonce === true ? sentWith(call, channel, nonce) : undefined;
  if (known !== undefined) return ok(shown(call, known));
  const message = world.post(channel, world.bot, { ...draft, reference, ...(nonce === null ? {} : { nonce }) });
  return ok(shown(call, message));
}

function sentWith(call: Call, channel: Channel, nonce: string | number): Message | undefined {
  const sinceMs = Date.now() - call.settings.nonceMs;
  return [...channel.messages.values()].find(
    (each) => each.author === call.world.bot && each.nonce === nonce && each.sentMs >= sinceMs,
  );
}

function referenceOf(call: Call, channel: Channel): Message["reference"] {
  const given = call.body.message_reference;
  if (typeof given !== "object" || given === null) return null;
  const { message_id: id, fail_if_not_exists: mustExist = true } = given as Record<string, unknown>;
  const message = channel.messages.get(String(id));
  if (message === undefined && mustExist === false) return null;
  if (message === undefined) throw badField("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message");
  const isSystem =
    message.type !== MessageType.normal && message.type !== MessageType.reply && message.type !== MessageType.command;
  if (isSystem)
    throw badField("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message");
  return { message, type: 0 };
}

function edit(call: Call): Reply {
  const channel = placeOf(call);
  const message = messageOf(call, channel);
  if (message.author !== call.world.bot) throw new Refusal(50005);
  if (channel.isArchived) throw new Refusal(50083);
  return ok(shown(call, applyEdit(call, message)));
}

/** Changes a message by a form. */
export function applyEdit(call: Call, message: Message): Message {
  const { body } = call;
  const draft = draftOf(call, message.channel, false);
  const kept = Array.isArray(body.attachments) ? body.attachments.map(({ id }) => String(id)) : null;
  const old = message.attachments.filter(({ id }) => kept === null || kept.includes(id));
  const attachments = [...old, ...(draft.attachments ?? [])];
  const content = "content" in body ? (draft.content ?? "") : message.content;
  const components = "components" in body ? (draft.components ?? []) : message.components;
  const embeds = "embeds" in body ? (draft.embeds ?? []) : message.embeds;
  if (content === "" && attachments.length + embeds.length + components.length === 0) throw new Refusal(50006);
  call.world.change(message, { content, components, embeds, attachments, flags: message.flags & ~MessageFlag.loading });
  return message;
}

function remove(call: Call): Reply {
  const channel = placeOf(call);
  const message = messageOf(call, channel);
  if (message.author !== call.world.bot) throw new Refusal(50013);
  if (channel.isArchived) throw new Refusal(50083);
  call.world.remove(message);
  return done;
}

function react(call: Call): Reply {
  const channel = placeOf(call, "react", "history");
  const message = messageOf(call, channel);
  const emoji = param(call, "emoji");
  if (!/\p{Extended_Pictographic}/u.test(emoji)) throw new Refusal(10014);
  if (channel.isArchived) throw new Refusal(50083);
  const users = message.reactions.get(emoji) ?? new Set();
  message.reactions.set(emoji, users.add(call.world.bot.id));
  return done;
}

function unreact(call: Call): Reply {
  const message = messageOf(call, placeOf(call));
  const emoji = param(call, "emoji");
  const users = message.reactions.get(emoji);
  users?.delete(call.world.bot.id);
  if (users?.size === 0) message.reactions.delete(emoji);
  return done;
}

function type(call: Call): Reply {
  const channel = placeOf(call, "send");
  checkWritable(channel);
  return done;
}

const MESSAGES = "/channels/:channel/messages";
const OWN_REACTION = `${MESSAGES}/:message/reactions/:emoji/@me`;

export const MESSAGE_ROUTES: readonly Route[] = [
  { method: "GET", path: MESSAGES, run: list },
  { method: "POST", path: MESSAGES, run: create },
  {
    method: "GET",
    path: `${MESSAGES}/:message`,
    run: (call) => ok(shown(call, messageOf(call, placeOf(call, "history")))),
  },
  { method: "PATCH", path: `${MESSAGES}/:message`, run: edit },
  { method: "DELETE", path: `${MESSAGES}/:message`, run: remove },
  { method: "PUT", path: OWN_REACTION, run: react },
  { method: "DELETE", path: OWN_REACTION, run: unreact },
  { method: "POST", path: "/channels/:channel/typing", run: type },
];
