/**
 * Everything over REST that is not a message and not an interaction: the bot, its application and commands, guilds,
 * channels, threads, direct chats. Invariant: a bot sees what it may see, and no more.
 */
import { type Channel, ChannelKind, type Guild } from "./model.js";
import { Refusal } from "./refusal.js";
import { placeOf } from "./rest-messages.js";
import { type Call, done, ok, param, type Reply, type Route } from "./routes.js";
import { checkCommands } from "./validate.js";
import { channelWire, guildWire, memberWire, userWire } from "./wire.js";

function guildOf(call: Call): Guild {
  const guild = call.world.guilds.get(param(call, "guild"));
  if (guild === undefined) throw new Refusal(10004);
  return guild;
}

function application({ world, settings }: Call): Reply {
  const { id, username } = world.bot;
  const looks = {
    icon: null,
    description: "",
    bot_public: true,
    bot_require_code_grant: false,
    verify_key: "0".repeat(64),
  };
  return ok({ id, name: username, ...looks, flags: settings.applicationFlags, bot: userWire(world.bot) });
}

function putCommands(call: Call): Reply {
  const { world } = call;
  if (param(call, "application") !== world.bot.id) throw new Refusal(50001);
  const commands = checkCommands(call.raw).map((command) => {
    const known = world.commands.get(String(command.name));
    const identity = { id: known?.id ?? world.ids.next(), version: world.ids.next(), application_id: world.bot.id };
    return { type: 1, options: [], default_member_permissions: null, nsfw: false, ...command, ...identity };
  });
  world.commands = new Map(commands.map((command) => [String((command as { name?: unknown }).name), command]));
  return ok(commands);
}

function directChat(call: Call): Reply {
  const user = call.world.users.get(String(call.body.recipient_id));
  if (user === undefined) throw new Refusal(10013);
  if (user.isBot) throw new Refusal(50007);
  return ok(channelWire(call.world.directChat(user)));
}

function changeChannel(call: Call): Reply {
  const channel = placeOf(call, "threads");
  const { archived = channel.isArchived, locked = channel.isLocked } = call.body;
  if (channel.kind !== ChannelKind.thread) throw new Refusal(50013);
  if (channel.isLocked && call.body.archived === false) throw new Refusal(50083);
  call.world.setArchived(channel, archived === true, locked === true);
  return ok(channelWire(channel));
}

function startThread(call: Call, id?: string): Reply {
  const parent = placeOf(call, "threads");
  const { name } = call.body;
  if (typeof name !== "string" || name.length < 1 || name.length > 100) throw new Refusal(50035);
  if (parent.guild === null) throw new Refusal(50013);
  const place = { name, guild: parent.guild, parent, ...(id === undefined ? {} : { id }) };
  return { status: 201, body: channelWire(call.world.channel(ChannelKind.thread, place)) };
}

function threadFrom(call: Call): Reply {
  const id = param(call, "message");
  if (!placeOf(call).messages.has(id)) throw new Refusal(10008);
  return startThread(call, id);
}

function seenIn(guild: Guild, isWanted: (channel: Channel) => boolean): unknown[] {
  return guild.channels.filter((channel) => !channel.denied.has("view") && isWanted(channel)).map(channelWire);
}

const isThread = ({ kind }: Channel): boolean => kind === ChannelKind.thread;

function member(call: Call): Reply {
  const guild = guildOf(call);
  const { world } = call;
  const id = param(call, "user") === "@me" ? world.bot.id : param(call, "user");
  const user = world.users.get(id);
  if (user === undefined) throw new Refusal(10013);
  return ok({ ...memberWire(user === world.bot ? [guild.botRoleId] : []), user: userWire(user) });
}

function userById(call: Call): Reply {
  const user = call.world.users.get(param(call, "user"));
  if (user === undefined) throw new Refusal(10013);
  return ok(userWire(user));
}

export const PLACE_ROUTES: readonly Route[] = [
  { method: "GET", path: "/gateway/bot", run: (call) => ok(call.settings.gatewayBot()) },
  {
    method: "GET",
    path: "/users/@me",
    run: ({ world }) => ok({ ...userWire(world.bot), verified: true, mfa_enabled: false, email: null, flags: 0 }),
  },
  {
    method: "GET",
    path: "/users/@me/guilds",
    run: ({ world }) =>
      ok(
        [...world.guilds.values()].map(({ id, name }) => ({
          id,
          name,
          icon: null,
          owner: false,
          permissions: "0",
          features: [],
        })),
      ),
  },
  { method: "POST", path: "/users/@me/channels", run: directChat },
  { method: "GET", path: "/users/:user", run: userById },
  { method: "GET", path: "/applications/@me", run: application },
  { method: "GET", path: "/oauth2/applications/@me", run: application },
  { method: "GET", path: "/applications/:application/commands", run: ({ world }) => ok([...world.commands.values()]) },
  { method: "PUT", path: "/applications/:application/commands", run: putCommands },
  { method: "GET", path: "/guilds/:guild", run: (call) => ok(guildWire(guildOf(call), call.world.bot)) },
  {
    method: "GET",
    path: "/guilds/:guild/channels",
    run: (call) => ok(seenIn(guildOf(call), (channel) => !isThread(channel))),
  },
  {
    method: "GET",
    path: "/guilds/:guild/threads/active",
    run: (call) =>
      ok({ threads: seenIn(guildOf(call), (channel) => isThread(channel) && !channel.isArchived), members: [] }),
  },
  { method: "GET", path: "/guilds/:guild/members/:user", run: member },
  { method: "GET", path: "/channels/:channel", run: (call) => ok(channelWire(placeOf(call))) },
  { method: "PATCH", path: "/channels/:channel", run: changeChannel },
  { method: "POST", path: "/channels/:channel/threads", run: (call) => startThread(call) },
  { method: "POST", path: "/channels/:channel/messages/:message/threads", run: threadFrom },
  {
    method: "PUT",
    path: "/channels/:channel/thread-members/@me",
    run: (call) => {
      placeOf(call);
      return done;
    },
  },
];
