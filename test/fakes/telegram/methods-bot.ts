/**
 * The methods around messages: who the bot is, its updates, its menu, signs of life, presses, reactions. Invariant: a second
 * poll, a webhook and a poll exclude each other as they do at Telegram.
 */
import type { BotCommand } from "grammy/types";
import { chatIdOf, type Method } from "./call.js";
import { GENERAL } from "./place.js";
import { badRequest } from "./refusal.js";

const ACTIONS: readonly string[] = [
  ...["typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document"],
  ...["choose_sticker", "find_location", "record_video_note", "upload_video_note"],
];
/** Some of the emoji that Telegram takes as reactions. */
const REACTIONS: readonly string[] = [
  ..."👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🙏👌🕊🤡🥱🥴😍🐳🌚🌭💯🤣⚡🍌🏆💔🤨😐🍓🍾💋🖕😈😴😭🤓👻👀🎃🙈😇😨🤝✍🤗🫡🎅🎄☃💅🤪🗿🆒💘🙉🦄😘💊🙊😎👾😡",
];

export const BOT_METHODS: Readonly<Record<string, Method>> = {
  getMe: ({ world }) => world.bot,

  getUpdates: ({ params, updates, signal }) => {
    const limit = Math.min(100, Math.max(1, params.int("limit") ?? 100));
    const timeoutMs = Math.min(50, Math.max(0, params.int("timeout") ?? 0)) * 1000;
    const allowed = params.list("allowed_updates") as string[] | null;
    return updates.ask({ offset: params.int("offset"), limit, timeoutMs, allowed, signal });
  },

  setWebhook: ({ params, updates }) => {
    const url = params.text("url") ?? "";
    const secret = params.text("secret_token");
    if (params.flag("drop_pending_updates")) updates.dropPending();
    if (url === "") updates.deleteHook();
    else {
      if (!url.startsWith("https://")) throw badRequest("bad webhook: An HTTPS URL must be provided for webhook");
      if (secret !== null && !/^[A-Za-z0-9_-]{1,256}$/.test(secret))
        throw badRequest("secret token contains unallowed characters");
      const connections = Math.min(100, Math.max(1, params.int("max_connections") ?? 40));
      updates.setHook({ url, secret, connections }, params.list("allowed_updates") as string[] | null);
    }
    return true;
  },

  deleteWebhook: ({ params, updates }) => {
    if (params.flag("drop_pending_updates")) updates.dropPending();
    updates.deleteHook();
    return true;
  },

  getWebhookInfo: ({ updates }) => updates.info,

  setMyCommands: ({ params, world }) => {
    const commands = (params.list("commands") ?? []) as BotCommand[];
    if (commands.length > 100) throw badRequest("BOT_COMMANDS_TOO_MUCH");
    for (const { command, description } of commands) {
      if (!/^[a-z0-9_]{1,32}$/.test(command)) throw badRequest("BOT_COMMAND_INVALID");
      if (description.length < 1 || description.length > 256) throw badRequest("BOT_COMMAND_DESCRIPTION_INVALID");
    }
    world.commands.set(scopeOf(params.object("scope"), params.text("language_code")), commands);
    return true;
  },

  getMyCommands: ({ params, world }) =>
    world.commands.get(scopeOf(params.object("scope"), params.text("language_code"))) ?? [],

  deleteMyCommands: ({ params, world }) => {
    world.commands.delete(scopeOf(params.object("scope"), params.text("language_code")));
    return true;
  },

  getChat: ({ params, world }) => world.placeOf(chatIdOf(params)).wire,

  sendChatAction: ({ params, world }) => {
    const place = world.placeOf(chatIdOf(params));
    place.checkWritable();
    if (!ACTIONS.includes(params.text("action") ?? "")) throw badRequest("wrong parameter action in request");
    const thread = params.int("message_thread_id");
    if (!place.isForum || thread !== GENERAL) place.checkThread(thread);
    // In a forum only a named topic shows it, "General" too.
    if (!place.isForum || thread !== null) place.typing.push({ thread, atMs: performance.now() });
    return true;
  },

  setMessageReaction: ({ params, world }) => {
    const place = world.placeOf(chatIdOf(params));
    place.checkWritable();
    const post = place.find(params.int("message_id"));
    if (post === null) throw badRequest("message to react not found");
    const wanted = (params.list("reaction") ?? []) as Array<{ type: string; emoji?: string }>;
    if (wanted.length > 1) throw badRequest("REACTIONS_TOO_MANY");
    const emoji = wanted.map((each) => (each.type === "emoji" ? (each.emoji ?? "") : ""));
    if (emoji.some((each) => !REACTIONS.includes(each))) throw badRequest("REACTION_INVALID");
    post.reactions = emoji;
    return true;
  },

  answerCallbackQuery: ({ params, world }) => {
    const press = world.presses.get(params.text("callback_query_id") ?? "");
    if (press === undefined || press.answer !== null)
      throw badRequest("query is too old and response timeout expired or query ID is invalid");
    const text = params.text("text") ?? "";
    if (text.length > 200) throw badRequest("MESSAGE_TOO_LONG");
    press.answer = { text, isAlert: params.flag("show_alert") };
    return true;
  },
};

function scopeOf(scope: Record<string, unknown> | null, language: string | null): string {
  return JSON.stringify([scope ?? { type: "default" }, language ?? ""]);
}
