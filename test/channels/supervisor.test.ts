/** The life of one channel: how soon it is tried again, what is seen meanwhile, what a failure leaves alone. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ChannelHealth } from "../../src/channels/channel.js";
import { NanogateError } from "../../src/errors.js";
import { Delivering } from "./delivery-harness.js";

let world: Delivering;
beforeEach(() => {
  world = new Delivering();
});
afterEach(() => world.close());

const DAY_MS = 86_400_000;
const failed = (given: object = {}): ChannelHealth => ({
  state: "failed",
  problem: "bad token",
  advice: "make one",
  ...given,
});
const starts = () => world.channel.life.filter((call) => call === "start").length;

/** The channel fails with each start, and says so itself. */
function failAtStart(health: ChannelHealth): void {
  world.channel.onStart = async () => {
    world.channel.state = health;
    throw new NanogateError("TELEGRAM_TOKEN_INVALID", "the token is no token");
  };
}

describe("a failure that only a person can mend", () => {
  it("is tried again every ten minutes, in the channel's own words", async () => {
    failAtStart(failed({ isPermanent: true }));
    const manager = world.manager();
    await manager.start();
    expect(manager.health().get("recording")).toEqual(failed({ isPermanent: true }));
    await world.clock.advance(599_999);
    expect(starts()).toBe(1);
    await world.clock.advance(1);
    expect(starts()).toBe(2);
  });

  it("is treated alike when it shows while the channel runs", async () => {
    await world.manager().start();
    world.channel.state = failed({ isPermanent: true });
    await world.clock.advance(600_000);
    expect(starts()).toBe(1);
    await world.clock.advance(1_000);
    expect(starts()).toBe(2);
  });
});

describe("a channel that fails again and again", () => {
  it.each([
    ["at its start", () => failAtStart(failed())],
    [
      "soon after it",
      () => {
        world.channel.onStart = async () => {
          queueMicrotask(() =>
            queueMicrotask(() => {
              world.channel.state = failed();
            }),
          );
        };
      },
    ],
  ])(
    "%s is started far fewer than a thousand times a day, five minutes apart in the end",
    async (_when, script) => {
      script();
      await world.manager().start();
      await world.clock.advance(DAY_MS);
      expect(starts()).toBeGreaterThan(200);
      expect(starts()).toBeLessThan(310);
    },
    30_000,
  );

  it("after some minutes each does not begin to count anew", async () => {
    world.channel.onStart = async () => {
      const sinceMs = world.clock.nowMs();
      void world.clock.sleep(300_000, new AbortController().signal).then(() => {
        if (world.clock.nowMs() - sinceMs >= 300_000) world.channel.state = failed();
      });
    };
    await world.manager().start();
    await world.clock.advance(DAY_MS);
    expect(starts()).toBeLessThan(160);
  }, 30_000);

  it("is failed until it has been started again, and then speaks for itself", async () => {
    const manager = world.manager();
    await manager.start();
    world.channel.state = failed();
    await world.clock.advance(1_000);
    expect(manager.health().get("recording")).toEqual(failed());
    world.channel.onStart = async () => {
      expect(manager.health().get("recording")).toEqual(failed());
    };
    await world.clock.advance(1_000);
    expect(manager.health().get("recording")).toEqual({ state: "running" });
  });
});

it("an account that is lost again and again is taken again with longer and longer waits", async () => {
  await world.manager().start();
  for (let at = 0; at < 2_000; at += 1) {
    await world.clock.advance(10_000);
    world.outbox.owners.delete("bot");
    world.outbox.owners.set("bot", { process: "other", untilMs: 0, fence: 1e6 + at });
  }
  // Five and a half hours of losses.
  expect(starts()).toBeLessThan(230);
}, 30_000);

it("what is on its way when a channel fails may arrive", async () => {
  await world.manager().start();
  let arrive = () => {};
  world.channel.onSend = () =>
    new Promise((resolve) => {
      arrive = resolve;
    });
  world.put("c1", "on its way");
  await world.settle();
  world.channel.state = failed();
  await world.clock.advance(5_000);
  arrive();
  await world.settle();
  expect([world.channel.got, world.outbox.deadLetters, world.outbox.entries]).toEqual([["c1:on its way"], [], []]);
});

it("a channel that is only deaf is left running: its health is seen, and its answers go out", async () => {
  const manager = world.manager();
  await manager.start();
  world.channel.state = failed({ isDeaf: true });
  await world.clock.advance(60_000);
  world.put("c1", "an answer");
  await world.settle();
  expect(manager.health().get("recording")).toEqual(failed({ isDeaf: true }));
  expect([world.channel.life, world.channel.got]).toEqual([["start"], ["c1:an answer"]]);
});

describe("what a channel is given", () => {
  it("is there without the account too, and refuses everything once the gateway stops", async () => {
    const first = world.manager("one");
    const second = world.manager("two");
    await first.start();
    await second.start();
    const context = second.contextOf("recording");
    expect(second.health().get("recording")).toEqual({ state: "standby" });
    const message = {} as Parameters<NonNullable<typeof context>["accept"]>[0];
    const knock = {} as Parameters<NonNullable<typeof context>["admit"]>[0];
    expect(await context?.accept(message)).toMatchObject({ status: "stored" });
    expect(await context?.admit(knock)).toMatchObject({ kind: "admitted" });
    await context?.memory.set("offset", "7");
    expect(world.memories.get("bot")?.kept.get("offset")).toBe("7");
    second.refuseNew();
    await expect(context?.accept(message)).rejects.toMatchObject({ code: "BUS_UNAVAILABLE" });
    await expect(context?.admit(knock)).rejects.toMatchObject({ code: "BUS_UNAVAILABLE" });
    expect(second.contextOf("another")).toBeNull();
  });
});
