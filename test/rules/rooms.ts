/**
 * Which room may import which: the table "Rooms" of the design as a function. It reads no file.
 */

const LEAVES = ["errors", "logger", "faults", "metrics", "commands", "bus/messages"];
/** What every room but the leaves and `config` may use. */
const COMMON = ["errors", "logger", "faults", "metrics", "bus/messages"];
const PORTS = /(?:^|\/)(?:[\w-]+-)?ports$/;

type Allows = (target: string) => boolean;

const isIn = (folder: string) => (name: string) => name === folder || name.startsWith(`${folder}/`);
const oneOf = (...allowed: ReadonlyArray<string | Allows>): Allows => {
  return (target) => allowed.some((rule) => (typeof rule === "string" ? rule === target : rule(target)));
};
/** Its own folder, where only files directly in it are meant. */
const directlyIn = (folder: string) => (name: string) =>
  isIn(folder)(name) && !name.slice(folder.length + 1).includes("/");

interface Room {
  room: string;
  has: Allows;
  may: Allows;
}

/** A file of `agent` that the runner is made of; it stands in the folder of the loop and obeys the runner's rule. */
const isRunner: Allows = (name) => /^agent\/runner(?:-[\w-]+)?$/.test(name);
/** What a channel sees of the room around it. */
const SEAM = ["channels/channel", "channels/ports", "channels/clock", "commands", isIn("channels/text")];

/** The first room that has a file is its room. */
const ROOMS: readonly Room[] = [
  { room: "leaf", has: oneOf(...LEAVES), may: () => false },
  {
    room: "config",
    has: isIn("config"),
    may: oneOf("errors", "faults", isIn("config"), (name) => /^channels\/[\w-]+\/config$/.test(name)),
  },
  { room: "redis", has: isIn("redis"), may: oneOf(...COMMON, isIn("redis"), (name) => PORTS.test(name)) },
  { room: "bus", has: isIn("bus"), may: oneOf(...COMMON, isIn("bus")) },
  { room: "session", has: isIn("session"), may: oneOf(...COMMON, isIn("session")) },
  { room: "media", has: isIn("media"), may: oneOf(...COMMON, isIn("media"), "channels/ports") },
  { room: "workspace", has: isIn("workspace"), may: oneOf(...COMMON, isIn("workspace")) },
  {
    room: "agent/runner",
    has: isRunner,
    may: oneOf(...COMMON, isRunner, isIn("agent/providers"), isIn("agent/tools"), "agent/ports"),
  },
  { room: "agent/providers", has: isIn("agent/providers"), may: oneOf(...COMMON, isIn("agent/providers")) },
  {
    room: "agent/tools",
    has: isIn("agent/tools"),
    // The seam's types of a tool call and its definition.
    may: oneOf(...COMMON, isIn("agent/tools"), "agent/providers/provider"),
  },
  {
    room: "agent",
    has: isIn("agent"),
    may: oneOf(...COMMON, "commands", isIn("agent"), isIn("bus"), isIn("session"), isIn("workspace")),
  },
  { room: "automation", has: isIn("automation"), may: oneOf(...COMMON, isIn("automation"), "session/ports") },
  { room: "channels/text", has: isIn("channels/text"), may: oneOf(...COMMON, isIn("channels/text")) },
  {
    room: "channels/registry",
    has: oneOf("channels/registry"),
    may: oneOf(...COMMON, "commands", isIn("channels"), isIn("bus")),
  },
  {
    room: "channels",
    has: directlyIn("channels"),
    may: oneOf(...COMMON, "commands", directlyIn("channels"), isIn("channels/text"), isIn("bus")),
  },
  {
    room: "the outermost",
    has: oneOf("main", "index", (name) => /^gateway(?:-[\w-]+)?$/.test(name), isIn("http"), isIn("cli")),
    may: () => true,
  },
];

const isOutermost: Allows = (name) => roomOf(name)?.room === "the outermost";

function roomOf(name: string): Room | undefined {
  const found = ROOMS.find(({ has }) => has(name));
  if (found !== undefined) return found;
  const [, channel] = /^channels\/([\w-]+)\//.exec(name) ?? [];
  if (channel === undefined) return undefined;
  const own = `channels/${channel}`;
  return { room: own, has: isIn(own), may: oneOf(...COMMON, ...SEAM, isIn(own)) };
}

/** Why a file may not import another; null when it may. */
export function whyForbidden(name: string, target: string): string | null {
  const room = roomOf(name);
  if (room === undefined) return `src/${name}.ts is in no room of the table`;
  if (isOutermost(target) && room.room !== "the outermost") return `nobody imports src/${target}.ts`;
  if (!room.may(target)) return `room "${room.room}" must not import src/${target}.ts`;
  return null;
}

/** Cycles of imports, each as the files on it. */
export function cyclesOf(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const visit = (name: string, trail: readonly string[]): void => {
    const at = trail.indexOf(name);
    if (at >= 0) cycles.push([...trail.slice(at), name]);
    if (at >= 0 || done.has(name)) return;
    for (const target of imports.get(name) ?? []) visit(target, [...trail, name]);
    done.add(name);
  };
  for (const name of imports.keys()) visit(name, []);
  return cycles;
}
