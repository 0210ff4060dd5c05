/** `outbox`: dead letters are listed, sent again and dropped by commands, beside whoever delivers. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Delivery } from "../../src/bus/delivery-ports.js";
import { openWorkspace } from "../../src/workspace/workspace.js";
import { outbound, outboxRoute } from "../fakes/outbound.js";
import { type BusFixture, createBusFixture } from "../support/bus-fixture.js";
import { type Ended, run } from "./support/command.js";
import { Stage } from "./support/stage.js";

let stage: Stage;
let deliverer: BusFixture;
let fence: number;
beforeEach(async () => {
  stage = await Stage.open();
  const { id } = await openWorkspace(stage.workspace);
  deliverer = await createBusFixture(stage.redis.address, { prefix: "nanogate", workspaceId: id });
  fence = (await deliverer.stack.outbox.own("bot", 60_000))?.fence ?? 0;
});
afterEach(async () => {
  await deliverer.close();
  await stage.close();
});

const command = (...args: string[]): Promise<Ended> =>
  run(["outbox", ...args, "-c", stage.configFile, "-w", stage.workspace], { home: stage.home });

const waiting = (): Promise<Delivery[]> => deliverer.stack.outbox.read("bot", "0", 1);

/** A delivery whose first part was sent and whose second failed. */
async function deadLetter(id: string, text: string): Promise<void> {
  const { intake, outbox } = deliverer.stack;
  await intake.reply([{ route: outboxRoute("c1"), message: outbound(text, { type: "notice" }, id) }]);
  const delivery = (await waiting()).find(({ outgoing }) => outgoing.message.id === id);
  if (delivery === undefined) throw new Error("nothing to deliver");
  await outbox.receipt("bot", fence, id, "0", { state: "sent", platformId: "17" });
  await outbox.receipt("bot", fence, id, "1", { state: "unknown", reason: "cut off" });
  const letter = { id, channel: "recording", chatId: "c1", text, error: "part 2 of 2: outcome unknown", attempts: 3 };
  await outbox.consume("bot", fence, delivery, letter);
}

it("lists dead letters with the fields that scripts rely on", async () => {
  expect(await command("list")).toEqual({ code: 0, out: "", err: "There are no dead letters.\n" });
  await deadLetter("t1.final", "Hello\nthere \u001b[31m");
  const { code, out } = await command("list", "--json");
  expect([code, JSON.parse(out)]).toEqual([
    0,
    [
      {
        id: "t1.final",
        channel: "recording",
        chatId: "c1",
        text: "Hello\nthere \u001b[31m",
        error: "part 2 of 2: outcome unknown",
        attempts: 3,
      },
    ],
  ]);
  const text = (await command("list")).out.trimEnd().split("\n");
  expect(text).toEqual([
    expect.stringMatching(/^ID +CHANNEL/),
    expect.stringMatching(/^t1\.final +recording +c1 +3 +Hello there \[31m +part 2/),
  ]);
});

it("puts one back under a new entry, without the receipts of parts that were not sent", async () => {
  await deadLetter("t1.final", "whole message");
  await deadLetter("t2.final", "another");
  const { code, out } = await command("retry", "t1.final");
  expect([code, out]).toEqual([0, expect.stringContaining("t1.final")]);
  const [again, ...others] = await waiting();
  expect(others).toEqual([]);
  expect(again?.outgoing).toEqual({
    route: outboxRoute("c1"),
    message: outbound("whole message", { type: "notice" }, "t1.final"),
  });
  expect(await deliverer.stack.outbox.receipts("t1.final")).toEqual(
    new Map([["0", { state: "sent", platformId: "17" }]]),
  );
  expect((await deliverer.stack.outbox.deadLetters()).map(({ id }) => id)).toEqual(["t2.final"]);
  const twice = await command("retry", "t1.final");
  expect(twice.code).toBe(1);
  expect(twice.err).toContain("no dead letter t1.final");
});

it("drops one for good", async () => {
  await deadLetter("t1.final", "gone");
  expect(JSON.parse((await command("drop", "t1.final", "--json")).out)).toEqual({ id: "t1.final", dropped: true });
  expect(JSON.parse((await command("list", "--json")).out)).toEqual([]);
  expect(await waiting()).toEqual([]);
  expect((await command("drop", "t1.final")).code).toBe(1);
});

it("status counts what waits for delivery and what was given up", async () => {
  const { intake } = deliverer.stack;
  await deadLetter("t1.final", "given up");
  await intake.reply([{ route: outboxRoute("c2"), message: outbound("waits", { type: "notice" }, "t2.final") }]);
  const args = ["status", "-c", stage.configFile, "-w", stage.workspace];
  const { out } = await run([...args, "--json"], { home: stage.home });
  expect(JSON.parse(out).redis).toMatchObject({
    accounts: [{ account: "bot", waiting: 1, isOwned: true, oldestMs: expect.any(Number) }],
    deadLetters: { inbound: 0, outbound: 1 },
  });
  expect((await run(args, { home: stage.home })).out).toMatch(/^outbox bot +1 waiting, the oldest for .*owned/m);
});
