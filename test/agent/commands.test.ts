/** What is read as a command, and what is said to who mistyped one. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { commandMistake, parseCommand, readCommand } from "../../src/agent/commands/parse.js";
import { COMMANDS } from "../../src/commands.js";
import { inbound } from "../support/bus-fixture.js";

const command = (name: string, args = "") => ({ kind: "command", name, args });

describe("a message is read", () => {
  test.each([
    ["hello", { kind: "text" }],
    ["", { kind: "text" }],
    ["  ", { kind: "text" }],
    ["what is /help?", { kind: "text" }],
    ["/help", command("help")],
    ["  /help\n", command("help")],
    ["/HELP", command("help")],
    ["/Stop@my_bot2", command("stop")],
    ["/stop all", command("stop", "all")],
    ["/stop@bot   all  of it", command("stop", "all of it")],
    ["/stop\nALL", command("stop", "ALL")],
    ["/new", command("new")],
    ["/new chat", { kind: "needless_arguments", name: "new" }],
    ["/help me", { kind: "needless_arguments", name: "help" }],
    ["/halp", { kind: "unknown", word: "halp", nearest: "help" }],
    ["/sotp", { kind: "unknown", word: "sotp", nearest: "stop" }],
    ["/weather Paris", { kind: "unknown", word: "weather", nearest: null }],
    ["/", { kind: "unknown", word: "", nearest: null }],
    ["/ help", { kind: "unknown", word: "", nearest: null }],
    ["//help", { kind: "unknown", word: "/help", nearest: "help" }],
    ["//", { kind: "unknown", word: "/", nearest: null }],
    ["/@bot", { kind: "unknown", word: "", nearest: null }],
  ])("%j", (content, expected) => {
    expect(parseCommand(content)).toEqual(expected);
  });

  test("as a command only when a person says it", () => {
    expect(readCommand(inbound("/new"))).toEqual(command("new"));
    expect(readCommand(inbound("/new", { role: "system" }))).toEqual({ kind: "text" });
  });

  test("whatever follows a slash is never text, and its mistake is worded in a line", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (rest) => {
        const parsed = parseCommand(`/${rest}`);
        expect(parsed.kind).not.toBe("text");
        if (parsed.kind !== "unknown" && parsed.kind !== "needless_arguments") return;
        const mistake = commandMistake(parsed);
        expect(mistake.length).toBeLessThan(140);
        expect(mistake.isWellFormed() || !rest.isWellFormed()).toBe(true);
      }),
    );
  });
});

describe("a mistake is answered", () => {
  const answer = (content: string) => {
    const parsed = parseCommand(content);
    if (parsed.kind === "unknown" || parsed.kind === "needless_arguments") return commandMistake(parsed);
    throw new Error("no mistake");
  };

  test.each([
    ["/halp", "There is no command /halp. Did you mean /help? /help lists them all."],
    ["/weather Paris", "There is no command /weather. /help lists them all."],
    ["/", "There is no command /. /help lists them all."],
    ["/new chat", "/new takes no arguments."],
  ])("%s", (content, expected) => {
    expect(answer(content)).toBe(expected);
  });

  test("without repeating a long word, and without cutting a character in two", () => {
    expect(answer(`/${"x".repeat(5000)}`)).toBe(`There is no command /${"x".repeat(32)}…. /help lists them all.`);
    expect(answer(`/${"x".repeat(31)}😀😀`).isWellFormed()).toBe(true);
  });
});

test("every command of the table is read by its own name, and no name stands there twice", () => {
  for (const { name } of COMMANDS) expect(parseCommand(`/${name}`)).toEqual(command(name));
  expect(new Set(COMMANDS.map(({ name }) => name)).size).toBe(COMMANDS.length);
});
