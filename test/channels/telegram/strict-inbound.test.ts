/** The channel's incoming half against the strict fake: what real updates look like, and what the platform takes. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeTelegram } from "../../fakes/telegram/fake-telegram.js";
import { Inbound } from "./inbound-harness.js";

let telegram: FakeTelegram;
let open: Inbound[] = [];

beforeEach(async () => {
  telegram = await FakeTelegram.start();
});
afterEach(async () => {
  await Promise.all(open.map((inbound) => inbound.close()));
  open = [];
  await telegram.close();
});

async function started(): Promise<Inbound> {
  const inbound = await Inbound.on(telegram);
  open.push(inbound);
  await inbound.start();
  await telegram.until(() => inbound.channel.health().state === "running");
  return inbound;
}

const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489", "hex");

describe("against the strict fake", () => {
  it("takes in a private message, its edit, a sticker and a place", async () => {
    const inbound = await started();
    const ann = telegram.person("ann");
    const first = ann.dm("hello");
    await telegram.until(() => inbound.accepted.length === 1);
    ann.edits(first, "hello again");
    ann.sticker(ann.chat, "🎈");
    ann.location(ann.chat, 1.5, 2.5);
    await telegram.until(() => inbound.accepted.length === 4);
    expect(inbound.texts()).toEqual(["hello", "hello again", "[sticker: 🎈]", "[location: 1.5, 2.5]"]);
    expect(inbound.accepted[1]).toMatchObject({ kind: "edit", edits: { id: String(first.message_id) } });
    expect(inbound.accepted[0]?.route.chatId).toBe(String(ann.chat.id));
    expect(telegram.violations).toEqual([]);
  });

  it("knows in a group whom a message is meant for", async () => {
    const inbound = await started();
    const [ann, group] = [telegram.person("ann"), telegram.group()];
    ann.says(group, "nobody in particular");
    ann.says(group, `${telegram.mention} you`);
    ann.says(group, "/status");
    await telegram.until(() => inbound.knocks.length === 3);
    const told = inbound.knocks.map(({ scene }) => scene);
    expect(told).toMatchObject([
      { isMentioned: false, isCommand: false },
      { isMentioned: true, isCommand: false },
      { isMentioned: false, isCommand: true },
    ]);
  });

  it("keeps files and albums", async () => {
    const inbound = await started();
    const ann = telegram.person("ann");
    const photo = (caption?: string) => ({
      kind: "photo" as const,
      bytes: PNG,
      ...(caption === undefined ? {} : { caption }),
    });
    ann.album(ann.chat, [photo(), photo("three of them"), photo()]);
    // A part may be handed in again, as the bus takes it once.
    const parts = () => [...new Map(inbound.accepted.map((each) => [each.id, each])).values()];
    await telegram.until(() => parts().length === 3);
    expect(parts().map(({ media, gatherMs }) => [media.length, gatherMs])).toEqual([
      [1, 1500],
      [1, 1500],
      [1, 1500],
    ]);
    ann.sends(ann.chat, { kind: "document", bytes: Buffer.from("x"), name: "big.bin", announced: 60_000_000 });
    await telegram.until(() => parts().length === 4);
    expect(inbound.texts().at(-1)).toContain("60 MB are more than");
  });

  it("moves on past posts of channels and events", async () => {
    const inbound = await started();
    const ann = telegram.person("ann");
    telegram.channelPost(telegram.channel(), "news");
    ann.blocks();
    ann.unblocks();
    ann.dm("after all that");
    await telegram.until(() => inbound.accepted.length === 1);
    await telegram.until(() => telegram.updates.pending.length === 0);
    expect(inbound.lines.filter((line) => line.includes("posts of channels"))).toHaveLength(1);
  });

  it("gives way to another program, and says so", async () => {
    const first = await started();
    const second = await started();
    await telegram.until(() => first.channel.health().state === "failed");
    expect(first.channel.health()).toMatchObject({ problem: expect.stringContaining("another program polls") });
    telegram.person("ann").dm("for whoever polls");
    await telegram.until(() => second.accepted.length === 1);
    expect(first.accepted).toEqual([]);
    expect(`${first.log}${second.log}`).not.toContain(telegram.secret);
  });

  it("fails for good when the token is revoked", async () => {
    const inbound = await started();
    telegram.revokeToken();
    telegram.person("ann").dm("wakes the long poll");
    await telegram.until(() => inbound.channel.health().state === "failed");
    expect(inbound.channel.health()).toMatchObject({ isPermanent: true });
  });
});
