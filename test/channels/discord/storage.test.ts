/** What cannot be stored at once: kept in order in the spool, over restarts, and handed in before anything newer. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import pino from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Spool } from "../../../src/channels/discord/spool.js";
import { NanogateError } from "../../../src/errors.js";
import { FakeDiscord } from "../../fakes/discord/fake-discord.js";
import { until } from "../../support/bus-fixture.js";
import { Harness } from "./harness.js";

const logger = pino({ level: "silent" });
const event = (n: number, channelId = "1") => ({ t: "MESSAGE_CREATE", channelId, d: { n } });

describe("the spool", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "ng-spool-"));
  });

  afterEach(() => rm(folder, { recursive: true }));

  const open = () => Spool.open({ folder, name: "a:b", logger });
  const text = () => readFile(path.join(folder, "a-b.jsonl"), "utf8");

  it("gives back what is not done, in order, and is empty when all is", async () => {
    const { spool } = await open();
    const numbers = await Promise.all([1, 2, 3].map((n) => spool.add(event(n))));
    await spool.done(numbers[1] ?? 0);
    await spool.close();
    const again = await open();
    expect(again.entries.map((entry) => entry.event.d)).toEqual([{ n: 1 }, { n: 3 }]);
    for (const { n } of again.entries) await again.spool.done(n);
    expect(await text()).toBe("");
    await again.spool.close();
  });

  it("leaves out a torn line and keeps the others", async () => {
    const { spool } = await open();
    await spool.add(event(1));
    await spool.close();
    await writeFile(path.join(folder, "a-b.jsonl"), `${await text()}[]\n{"n":9,"event":{"t":"MESS`);
    const again = await open();
    expect(again.entries.map((entry) => entry.event.d)).toEqual([{ n: 1 }]);
    await again.spool.add(event(2));
    await again.spool.close();
    const third = await open();
    expect(third.entries.map((entry) => entry.event.d)).toEqual([{ n: 1 }, { n: 2 }]);
    await third.spool.close();
  });

  it("is bounded", async () => {
    const { spool } = await open();
    const big = { ...event(1), d: "x".repeat(40_000_000) };
    expect(await spool.add(big)).not.toBeNull();
    expect(await spool.add(big)).toBeNull();
    expect(await spool.add(event(2))).not.toBeNull();
    await spool.close();
  });
});

describe("a bus that takes nothing", () => {
  let fake: FakeDiscord;
  let harness: Harness;
  let isAway: boolean;

  beforeEach(async () => {
    isAway = true;
    fake = await FakeDiscord.start({ identifyEveryMs: 0 });
    harness = await Harness.make(fake);
    harness.onAccept = async () => {
      if (isAway) throw new NanogateError("BUS_UNAVAILABLE", "away");
    };
    await harness.start();
  });

  afterEach(async () => {
    await harness.close();
    await fake.close();
  });

  const contents = () => harness.accepted.map(({ content }) => content);

  it("gets everything in order when it is back, and each file was fetched once", async () => {
    const ann = fake.person("ann");
    const files = [{ name: "a.txt", type: "text/plain", bytes: Buffer.from("a") }];
    ann.dm("1", { files });
    await fake.until(() => harness.log.some(({ msg }) => String(msg).includes("could not be stored")));
    ann.dm("2");
    ann.dm("3");
    await fake.until(() => harness.log.filter(({ msg }) => String(msg).includes("could not be stored")).length > 1);
    expect((await harness.spooled()).split("\n").filter((line) => line !== "")).toHaveLength(3);
    isAway = false;
    ann.dm("4");
    await harness.arrived(4);
    expect(contents()).toEqual(["1", "2", "3", "4"]);
    expect(fake.journal.calls("GET /attachments/:channel/:attachment/:name")).toHaveLength(1);
  });

  it("gets it after a restart, before what was said meanwhile", async () => {
    const ann = fake.person("ann");
    ann.dm("1");
    await fake.until(() => harness.log.some(({ msg }) => String(msg).includes("could not be stored")));
    ann.dm("2");
    await fake.until(() => harness.log.filter(({ msg }) => String(msg).includes("could not be stored")).length > 1);
    await harness.channel.stop();
    ann.dm("3");
    isAway = false;
    harness.create();
    await harness.start();
    await harness.arrived(2);
    expect(contents().slice(0, 2)).toEqual(["1", "2"]);
    await until(async () => (await harness.spooled()) === "");
  });

  it("holds up one channel and no other when only its session is full", async () => {
    isAway = false;
    const [ann, ben] = [fake.person("ann"), fake.person("ben")];
    harness.onAccept = async ({ senderId }) => {
      if (senderId === ann.id) throw new NanogateError("BUS_OVERLOADED", "full");
    };
    ann.dm("from ann");
    ben.dm("from ben");
    await harness.arrived(1);
    expect(contents()).toEqual(["from ben"]);
    harness.onAccept = async () => {};
    await harness.arrived(2);
  });
});
