/**
 * The part of the schema that is about channels: the WebSocket, and the platforms with a bot, which share most of their
 * settings. It reads nothing. Invariant: what every bot has is written once.
 */
import { z } from "zod";
import { durationMs, fromEnvironment, oneOf, text, textLike, wholeNumber, yesOrNo } from "./fields.js";

const HOUR_MS = 3_600_000;
const AN_OBJECT = { error: "an object" };
const AN_ADDRESS = "an http:// or https:// URL";

const websocket = z.object(
  {
    enabled: yesOrNo().default(true).describe("Whether WebSocket clients, the page among them, may connect."),
    streaming: yesOrNo().default(true).describe("Whether they see an answer while it is made."),
  },
  AN_OBJECT,
);

/** "auto": when its token is there. */
const enabledByToken = z
  .union([z.boolean(), z.literal("auto")], { error: 'true, false or "auto"' })
  .default("auto")
  .describe('Whether the bot is connected. "auto": when its token is there.');

const people = (what: string) =>
  z.array(text("a text"), { error: "a list of ids or names" }).default([]).describe(what);

/** What every platform with a bot has. */
const bot = {
  allowFrom: people(
    'Who may talk to the bot, by id or user name; "*" is everybody. Empty: only people who were paired.',
  ),
  owners: people("Who may approve pairings, stop and restart everything, by id or user name."),
  groupPolicy: oneOf(["mention", "reply", "open", "off"])
    .default("mention")
    .describe(
      "What the bot reads in groups. mention: what mentions or answers it; reply: what answers it; open: all; off: nothing.",
    ),
  groupAllowFrom: people('Who else may talk to the bot in groups, by id or user name; "*" is every member.'),
  allowBots: yesOrNo()
    .default(false)
    .describe("Whether other bots that a list names may talk to it, within `botBudget`."),
  botBudget: z
    .object(
      {
        messages: wholeNumber(1, 1000).default(10).describe("Messages of one bot in one chat that are answered."),
        perMs: durationMs(1000, 24 * HOUR_MS)
          .default(600_000)
          .describe("Within this time."),
      },
      AN_OBJECT,
    )
    .prefault({}),
  streaming: yesOrNo().default(true).describe("Whether an answer is shown while it is made, by edits of a message."),
  reaction: text("an emoji, or null")
    .nullable()
    .default("👀")
    .describe("The reaction that a message gets while it is answered. null: none."),
  lateEdits: oneOf(["ignore", "answer"])
    .default("ignore")
    .describe("What an edit of a message that is answered already does. answer: it is answered again."),
};

const telegram = z.object(
  {
    enabled: enabledByToken,
    token: text("a bot token, or null")
      .nullable()
      .default(fromEnvironment("TELEGRAM_BOT_TOKEN"))
      .describe("The token of the bot, from BotFather."),
    apiRoot: textLike(/^https?:\/\/[^\s/]+\S*$/i, AN_ADDRESS)
      .default("https://api.telegram.org")
      .describe("Where the Bot API is."),
    ...bot,
    allowChats: people("Groups in which the bot answers, by id. Empty: all it is a member of."),
    editIntervalMs: durationMs(100, 60_000)
      .default(1000)
      .describe("Least time between two edits of one chat; groups take three times as long."),
    drafts: yesOrNo()
      .default(false)
      .describe("Whether private chats show an answer in the making as a draft instead of by edits."),
    replyQuotes: yesOrNo().default(false).describe("Whether answers quote the message they answer."),
    webhook: z
      .object(
        {
          url: textLike(/^https:\/\/\S+$/i, "an https:// URL").describe(
            "The public URL of this gateway's path /telegram/webhook.",
          ),
          secret: textLike(/^[A-Za-z0-9_-]{1,256}$/, "1 to 256 letters, digits, dashes and underscores").describe(
            "What Telegram must present with each update.",
          ),
        },
        AN_OBJECT,
      )
      .nullable()
      .default(null)
      .describe("Updates are brought by Telegram instead of being asked for. null: they are asked for."),
  },
  AN_OBJECT,
);

const discord = z.object(
  {
    enabled: enabledByToken,
    token: text("a bot token, or null")
      .nullable()
      .default(fromEnvironment("DISCORD_BOT_TOKEN"))
      .describe("The token of the bot, from the developer portal."),
    apiRoot: textLike(/^https?:\/\/[^\s/]+\S*$/i, AN_ADDRESS)
      .default("https://discord.com/api")
      .describe("Where the API is."),
    ...bot,
    allowChannels: people("Channels in which the bot answers, by id; threads count as their channel. Empty: all."),
    allowGuilds: people("Servers in which the bot answers, by id. Empty: all."),
    editIntervalMs: durationMs(100, 60_000).default(1200).describe("Least time between two edits of one chat."),
    backfillMessages: wholeNumber(0, 100)
      .default(50)
      .describe(
        "How many missed messages of a channel are fetched after the connection was away; of more, the newest.",
      ),
  },
  AN_OBJECT,
);

/** Every channel there is. */
export const channels = z.object(
  { websocket: websocket.prefault({}), telegram: telegram.prefault({}), discord: discord.prefault({}) },
  AN_OBJECT,
);
