/** Slash commands and buttons through the real discord.js: first words in time, private refusals, values that come back. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { COMMANDS } from "../../../src/commands.js";
import { NanogateError } from "../../../src/errors.js";
import { FakeDiscord } from "../../fakes/discord/fake-discord.js";
import type { Channel } from "../../fakes/discord/model.js";
import { answer, Harness, sendAll } from "./harness.js";

const CALLBACK = "POST /interactions/:interaction/:token/callback";
const RESET = { kind: "reset", hasEffect: true } as const;
const PUT = "PUT /applications/:application/commands";

let fake: FakeDiscord;
let harness: Harness;
let room: Channel;

beforeEach(async () => {
  fake = await FakeDiscord.start({ identifyEveryMs: 0 });
  room = fake.text(fake.guild());
  harness = await Harness.make(fake);
  await harness.start();
  await fake.until(() => fake.world.commands.size === COMMANDS.length);
});

afterEach(async () => {
  await harness.close();
  await fake.close();
});

describe("the menu", () => {
  it("is the table of commands, and is written once", async () => {
    expect([...fake.world.commands.keys()].sort()).toEqual(COMMANDS.map(({ name }) => name as string).sort());
    await harness.restart();
    await fake.until(() => fake.journal.calls("GET /applications/:application/commands").length === 2);
    await fake.until(() => harness.channel.health().state === "running");
    expect(fake.journal.calls(PUT)).toHaveLength(1);
  });
});

describe("a slash command", () => {
  it("is handed in as its text, and its answers are shown to its asker only", async () => {
    const asked = fake.person("ann").runs(room, "stop", { args: "all" });
    const [message] = await harness.arrived(1);
    expect(message).toMatchObject({ id: asked.id, content: "/stop all", chatId: room.id });
    expect(harness.knocks[0]?.scene).toMatchObject({ kind: "group", isCommand: true });
    expect(asked).toMatchObject({ state: "deferred", isEphemeral: true });
    await sendAll(harness.channel, answer(room, "stopped 2", { replyTo: asked.id, event: { type: "notice" } }));
    expect(fake.answerTo(asked)).toBe("stopped 2");
    await sendAll(harness.channel, answer(room, "and more", { id: "t2", replyTo: asked.id }));
    expect(asked.followUps).toMatchObject([{ content: "and more", flags: 64 }]);
    expect(fake.answers(room)).toEqual([]);
  });

  it("of a stranger is refused in private", async () => {
    harness.admits = async () => ({ kind: "refused", why: "this person is not paired" });
    const asked = fake.person("eve").runs(room, "status");
    await fake.until(() => fake.answerTo(asked));
    expect(fake.answerTo(asked)).toContain("this person is not paired");
    expect(asked.isEphemeral).toBe(true);
    expect(harness.accepted).toEqual([]);
  });

  it("has its first word in time although nobody says yet who may speak", async () => {
    let decide = (): void => {};
    const decided = new Promise<void>((resolve) => {
      decide = resolve;
    });
    harness.admits = async () => {
      await decided;
      return { kind: "admitted", isOwner: false };
    };
    const asked = fake.person("ann").runs(room, "status");
    await fake.until(() => asked.state === "deferred");
    decide();
    await harness.arrived(1);
    expect(fake.journal.calls(CALLBACK).map(({ status }) => status)).toEqual([204]);
  });

  it("of which a further line may have been shown is not answered twice", async () => {
    const asked = fake.person("ann").runs(room, "status");
    await harness.arrived(1);
    const say = (id: string) =>
      sendAll(harness.channel, answer(room, id, { id, replyTo: asked.id })).catch((error: unknown) => error);
    fake.faults.next({ call: "PATCH /webhooks/:application/:token/messages/:original" }, RESET);
    expect(await say("first")).toMatchObject({ failure: { kind: "transient" } });
    await say("first");
    fake.faults.next({ call: "POST /webhooks/:application/:token" }, RESET);
    expect(await say("second")).toMatchObject({ failure: { kind: "unknown" } });
    expect([fake.answerTo(asked), asked.followUps.length]).toEqual(["first", 1]);
  });

  it("that cannot be stored says so", async () => {
    harness.onAccept = async () => {
      throw new NanogateError("BUS_UNAVAILABLE", "away");
    };
    const asked = fake.person("ann").runs(room, "help");
    expect(await fake.until(() => fake.answerTo(asked))).toContain("try again");
  });

  it("of a former life is answered by a plain message", async () => {
    const asked = fake.person("ann").runs(room, "status");
    await harness.arrived(1);
    await harness.restart();
    await sendAll(harness.channel, answer(room, "fine", { replyTo: asked.id }));
    expect(fake.answers(room)).toEqual(["fine"]);
  });

  it("leaves no token in the log when Discord refuses its answer", async () => {
    fake.faults.next({ call: CALLBACK }, { kind: "status", status: 500, hasEffect: false });
    const asked = fake.person("ann").runs(room, "status");
    await fake.until(() => harness.logText().includes("an interaction could not be answered"));
    expect(JSON.stringify(harness.log)).not.toContain(asked.token);
    expect(JSON.stringify(harness.log)).not.toContain(fake.token);
  });
});

describe("a button", () => {
  const long = "a value that does not fit ".repeat(10);
  const buttons = [
    [
      { label: "Yes", value: "yes" },
      { label: "No", value: "no" },
    ],
    [{ label: "Long", value: long }],
  ];

  it("gives its value back, also a long one after a restart, and goes away with its neighbours", async () => {
    const ann = fake.person("ann");
    await sendAll(harness.channel, answer(ann.chat, "Sure?", { buttons }));
    const shown = [...ann.chat.messages.values()].at(-1);
    if (shown === undefined) throw new Error("it is shown");
    await harness.restart();
    const pressed = ann.presses(shown, fake.visible(ann.chat).at(-1)?.buttons[2]?.id ?? "");
    const [message] = await harness.arrived(1);
    expect(message).toMatchObject({ kind: "callback", content: long, chatId: ann.chat.id, senderId: ann.id });
    expect(message?.route.messageId).toBe(shown.id);
    await fake.until(() => pressed.state === "updated");
    expect(fake.visible(ann.chat).at(-1)).toMatchObject({ content: "Sure?", buttons: [] });
  });

  it("stays for others when a stranger presses it", async () => {
    await sendAll(harness.channel, answer(room, "Sure?", { buttons }));
    const shown = [...room.messages.values()].at(-1);
    if (shown === undefined) throw new Error("it is shown");
    harness.admits = async () => ({ kind: "refused", why: "no" });
    const pressed = fake.person("eve").presses(shown, "yes");
    expect(await fake.until(() => fake.answerTo(pressed))).toContain("Not allowed: no");
    expect(pressed.isEphemeral).toBe(true);
    expect(fake.visible(room).at(-1)?.buttons).toHaveLength(3);
    expect(harness.accepted).toEqual([]);
  });

  it("stays when the press could not be stored", async () => {
    harness.onAccept = async () => {
      throw new NanogateError("BUS_OVERLOADED", "full");
    };
    await sendAll(harness.channel, answer(room, "Sure?", { buttons }));
    const shown = [...room.messages.values()].at(-1);
    if (shown === undefined) throw new Error("it is shown");
    const pressed = fake.person("ann").presses(shown, "yes");
    expect(await fake.until(() => fake.answerTo(pressed))).toContain("try again");
    expect(fake.visible(room).at(-1)?.buttons).toHaveLength(3);
  });
});
