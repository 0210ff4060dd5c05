/**
 * The rules of the house, run over the source: who may import whom, no cycles, who knows Redis and the environment, no
 * channel's name in the core, size, headers, no `any`. Each failure names the file and the rule.
 */
import { describe, expect, it } from "vitest";
import { cyclesOf, whyForbidden } from "./rooms.js";
import { parseSource, readSources, type SourceFile } from "./source.js";

const CHANNELS = ["websocket", "telegram", "discord"];
const sources = readSources("src");
const tests = readSources("test");

/** Lines "file: rule" for the files that break a rule. */
function breaches(
  files: readonly SourceFile[],
  judge: (file: SourceFile) => readonly string[] | string | null,
): string[] {
  return files.flatMap((file) => [judge(file) ?? []].flat().map((why) => `${file.name}: ${why}`));
}

describe("the source", () => {
  it("is read", () => {
    expect(sources.length).toBeGreaterThan(10);
    expect(sources.find(({ name }) => name === "bus/ports")?.imports).toEqual(["bus/messages"]);
  });

  it("imports only what its room may", () => {
    const judge = ({ name, imports }: SourceFile) => imports.flatMap((target) => whyForbidden(name, target) ?? []);
    expect(breaches(sources, judge)).toEqual([]);
  });

  it("has no cycles, type imports included", () => {
    expect(cyclesOf(new Map(sources.map(({ name, imports }) => [name, imports])))).toEqual([]);
  });

  it("knows Redis only in redis/", () => {
    const judge = ({ name, packages }: SourceFile) =>
      name.startsWith("redis/")
        ? null
        : packages
            .filter((used) => /^(?:ioredis|bullmq)(?:\/|$)/.test(used))
            .map((used) => `only redis/ imports ${used}`);
    expect(breaches(sources, judge)).toEqual([]);
  });

  it("imports only packages that are installed with it", async () => {
    const { default: manifest } = await import("../../package.json", { with: { type: "json" } });
    const judge = ({ packages }: SourceFile) =>
      packages
        .filter((used) => !used.startsWith("node:"))
        .map((used) =>
          used
            .split("/")
            .slice(0, used.startsWith("@") ? 2 : 1)
            .join("/"),
        )
        .filter((used) => !Object.hasOwn(manifest.dependencies, used))
        .map((used) => `${used} is not among the dependencies`);
    expect(breaches(sources, judge)).toEqual([]);
  });

  it("reads the environment only in config/", () => {
    const judge = ({ name, readsEnvironment }: SourceFile) =>
      readsEnvironment && !name.startsWith("config/") ? "only config/ reads process.env" : null;
    expect(breaches(sources, judge)).toEqual([]);
  });

  it("names a channel only in its folder, the registry and the config", () => {
    const isFree = (name: string, channel: string) =>
      name.startsWith(`channels/${channel}/`) || name.startsWith("config/") || name === "channels/registry";
    const names = (texts: readonly string[], channel: string) =>
      texts.some((text) => text === channel || text.startsWith(`${channel}:`));
    const judge = ({ name, texts }: SourceFile) =>
      CHANNELS.filter((channel) => !isFree(name, channel) && names(texts, channel)).map(
        (channel) => `the name "${channel}" belongs into channels/${channel}, the registry and the config`,
      );
    expect(breaches(sources, judge)).toEqual([]);
  });

  it("has no `any` and no default export", () => {
    const judge = ({ usesAny, hasDefaultExport }: SourceFile) => [
      ...(usesAny ? ["uses `any`"] : []),
      ...(hasDefaultExport ? ["has a default export"] : []),
    ];
    expect(breaches([...sources, ...tests], judge)).toEqual([]);
  });

  it("stays small: 250 lines in src, 400 in test", () => {
    const over = (limit: number) => (file: SourceFile) =>
      file.lines > limit ? `${file.lines} lines are more than ${limit}` : null;
    expect([...breaches(sources, over(250)), ...breaches(tests, over(400))]).toEqual([]);
  });

  it("opens every file with a header that says what it is", () => {
    const judge = ({ header }: SourceFile) => (header.trim().length < 40 ? "has no header comment" : null);
    expect(breaches(sources, judge)).toEqual([]);
  });
});

describe("the rules themselves", () => {
  it.each([
    ["bus/bus", "agent/loop"],
    ["session/manager", "redis/keys"],
    ["agent/runner", "bus/bus"],
    ["agent/runner-tools", "session/session"],
    ["agent/loop", "channels/manager"],
    ["agent/tools/read-file", "workspace/scope"],
    ["agent/providers/openai", "agent/loop"],
    ["channels/websocket/channel", "bus/bus"],
    ["channels/websocket/channel", "channels/telegram/parse"],
    ["channels/websocket/channel", "channels/manager"],
    ["channels/manager", "channels/websocket/channel"],
    ["channels/manager", "redis/outbox"],
    ["redis/outbox", "bus/bus"],
    ["config/load", "logger"],
    ["errors", "logger"],
    ["session/manager", "gateway"],
    ["agent/loop", "http/server"],
    ["nowhere/file", "errors"],
  ])("forbid %s to import %s", (name, target) => {
    expect(whyForbidden(name, target)).not.toBeNull();
  });

  it.each([
    ["redis/outbox", "bus/ports"],
    ["channels/registry", "channels/websocket/channel"],
    ["channels/websocket/channel", "channels/channel"],
    ["agent/loop", "session/manager"],
    ["cli/gateway", "gateway"],
    ["gateway", "redis/client"],
  ])("let %s import %s", (name, target) => {
    expect(whyForbidden(name, target)).toBeNull();
  });

  it("see every way to import, and cycles through types", () => {
    const parsed = parseSource(
      "a/b",
      `import type { A } from "./c.js"; export * from "../d.js"; type B = import("./e.js").B; void import("ioredis");`,
    );
    expect(parsed.imports).toEqual(["a/c", "d", "a/e"]);
    expect(parsed.packages).toEqual(["ioredis"]);
    const imports = new Map([
      ["x", ["y"]],
      ["y", ["z", "w"]],
      ["z", ["x"]],
      ["w", []],
    ]);
    expect(cyclesOf(imports)).toEqual([["x", "y", "z", "x"]]);
  });

  it("see the environment, `any`, channel names and headers", () => {
    const read = (code: string) => parseSource("a", code);
    expect(read("const { HOME } = process.env;").readsEnvironment).toBe(true);
    expect(read('const a = process["env"];').readsEnvironment).toBe(true);
    expect(read('import { env } from "node:process";').readsEnvironment).toBe(true);
    expect(read("const a: Array<any> = [];").usesAny).toBe(true);
    expect(read('const any = "any"; // any').usesAny).toBe(false);
    expect(read("const a = `telegram`;").texts).toEqual(["telegram"]);
    expect(read("/** A file. */\nimport 'a';").header).toBe("* A file. ");
    expect(read("import 'a';\n/** Late. */").header).toBe("");
  });
});
