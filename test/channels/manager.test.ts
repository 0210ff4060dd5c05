/** The manager: starting beside a failing channel, one owner an account, losing it, stopping in order. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Channel, type ChannelContext, type ChannelHealth, DeliveryError } from "../../src/channels/channel.js";
import { createSystemClock } from "../../src/channels/clock.js";
import { Lanes } from "../../src/channels/lanes.js";
import { NanogateError } from "../../src/errors.js";
import { settle } from "../fakes/manual-clock.js";
import { RecordingChannel } from "../fakes/recording-channel.js";
import { Delivering } from "./delivery-harness.js";

let world: Delivering;
beforeEach(() => {
  world = new Delivering();
});
afterEach(() => world.close());

/** A channel without an outbox. */
class PlainChannel implements Channel {
  readonly name = "plain";
  context: ChannelContext | null = null;
  starts = 0;
  stops = 0;
  state: ChannelHealth = { state: "stopped" };
  onStart: () => Promise<void> = async () => {};

  async start(context: ChannelContext): Promise<void> {
    this.starts += 1;
    await this.onStart();
    this.context = context;
    this.state = { state: "running" };
  }

  async stop(): Promise<void> {
    this.stops += 1;
    this.state = { state: "stopped" };
  }

  health(): ChannelHealth {
    return this.state;
  }
}

describe("starting", () => {
  it("marks a failing channel with what to do, tries again with back-off, and holds no other back", async () => {
    const plain = new PlainChannel();
    world.channel.onStart = async () => {
      throw new Error("bad address https://user:hunter2@host/");
    };
    const manager = world.manager("one", [world.channel, plain]);
    await manager.start();
    const health = manager.health();
    expect(health.get("plain")).toEqual({ state: "running" });
    const failed = health.get("recording");
    expect(failed).toMatchObject({ state: "failed", advice: expect.any(String) });
    expect(JSON.stringify(failed)).not.toContain("hunter2");
    await world.clock.advance(6_999);
    expect(world.channel.life.filter((call) => call === "start")).toHaveLength(3);
    world.channel.onStart = async () => {};
    await world.clock.advance(1);
    expect(manager.health().get("recording")).toEqual({ state: "running" });
    expect(plain.starts).toBe(1);
  });

  it("says the advice of an error that has one", async () => {
    world.channel.onStart = async () => {
      throw new NanogateError("PORT_TAKEN", "Port 1 is taken.");
    };
    const manager = world.manager();
    await manager.start();
    expect(manager.health().get("recording")).toMatchObject({ advice: expect.stringContaining("--port") });
  });

  it("starts a channel again that failed while it ran", async () => {
    const manager = world.manager();
    await manager.start();
    world.channel.state = { state: "failed", problem: "the token was revoked", advice: "make a new one" };
    await world.clock.advance(1_000);
    expect(manager.health().get("recording")).toMatchObject({ state: "failed", problem: "the token was revoked" });
    await world.clock.advance(1_000);
    expect(manager.health().get("recording")).toEqual({ state: "running" });
    world.put("c1", "after");
    await world.settle();
    expect(world.channel.got).toEqual(["c1:after"]);
  });
});

describe("owning an account", () => {
  it("is for one process; another stands by and takes over when it stops", async () => {
    const standby = new RecordingChannel();
    const first = world.manager("one");
    const second = world.manager("two", [standby]);
    await first.start();
    await second.start();
    expect(second.health().get("recording")).toEqual({ state: "standby" });
    expect(standby.life).toEqual([]);
    world.put("c1", "a");
    await world.settle();
    await first.stop();
    world.put("c1", "b");
    await world.clock.advance(5_000);
    expect([world.channel.got, standby.got]).toEqual([["c1:a"], ["c1:b"]]);
    expect(second.health().get("recording")).toEqual({ state: "running" });
  });

  it("is renewed for as long as it lasts", async () => {
    await world.manager().start();
    await world.clock.advance(200_000);
    expect(world.channel.life).toEqual(["start"]);
  });

  it("ends at once when another process has it: nothing more is sent", async () => {
    await world.manager().start();
    let send = () => {};
    let aborted = false;
    world.channel.onSend = (_part, { signal }) => {
      signal.addEventListener("abort", () => {
        aborted = true;
      });
      return new Promise((resolve) => {
        send = resolve;
      });
    };
    for (const text of ["a", "b"]) world.put("c1", text);
    await world.settle();
    const owner = world.outbox.owners.get("bot");
    world.outbox.owners.set("bot", { process: "other", untilMs: 1e9, fence: (owner?.fence ?? 0) + 1 });
    await world.clock.advance(6_500);
    send();
    await world.clock.advance(1_000);
    expect(aborted).toBe(true);
    expect(world.channel.got.filter((sent) => sent === "c1:b")).toEqual([]);
    expect(world.channel.life).toEqual(["start", "stop"]);
    expect(world.outbox.entries).toHaveLength(2);
  });

  it("is not trusted after a stall of the process, before the loss was noticed", async () => {
    await world.manager().start();
    world.clock.stall(13_000);
    world.put("c1", "late");
    await world.settle();
    expect(world.channel.got).toEqual([]);
    await world.clock.advance(30_000);
    expect(world.channel.got).toEqual(["c1:late"]);
  });

  it("ends before its lease when the store stays silent", async () => {
    await world.manager().start();
    world.outbox.failure = new NanogateError("BUS_UNAVAILABLE", "away");
    await world.clock.advance(9_000);
    expect(world.channel.life).toEqual(["start"]);
    await world.clock.advance(5_900);
    expect(world.channel.life).toEqual(["start", "stop"]);
    world.outbox.failure = null;
    await world.clock.advance(10_000);
    expect(world.channel.life).toEqual(["start", "stop", "start"]);
  });
});

describe("stopping", () => {
  it("takes nothing in, finishes what is in flight, gives the account back, then stops the channel", async () => {
    let send = () => {};
    world.channel.onSend = () =>
      new Promise((resolve) => {
        send = resolve;
      });
    const manager = world.manager();
    await manager.start();
    for (const text of ["one|two", "later"]) world.put("c1", text);
    await world.settle();
    const stopped = manager.stop();
    expect(manager.stop()).toBe(stopped);
    const message = { content: "too late" } as Parameters<ChannelContext["accept"]>[0];
    await expect(world.channel.context?.accept(message)).rejects.toMatchObject({ code: "BUS_UNAVAILABLE" });
    for (const _part of ["one", "two"]) {
      send();
      await world.settle();
    }
    await stopped;
    expect(world.channel.got).toEqual(["c1:one", "c1:two"]);
    expect(world.outbox.entries.map(({ outgoing }) => outgoing.message.id)).toEqual(["later"]);
    expect(world.outbox.owners.size).toBe(0);
    expect([world.channel.life, manager.health().get("recording")]).toEqual([["start", "stop"], { state: "stopped" }]);
  });

  it("ends a send that does not end within the drain, and records it as unclear", async () => {
    world.channel.onSend = () => new Promise(() => {});
    const manager = world.manager();
    await manager.start();
    world.put("c1", "stuck");
    await world.settle();
    let isStopped = false;
    const stopped = manager.stop().then(() => {
      isStopped = true;
    });
    await world.clock.advance(24_999);
    expect(isStopped).toBe(false);
    await world.clock.advance(1_001);
    await stopped;
    expect(world.receipts("stuck")).toEqual(["0:?"]);
    expect(world.outbox.deadLetters).toHaveLength(1);
  });

  it("does not wait for a chat that only waits for its next try", async () => {
    const manager = world.manager();
    world.channel.onSend = async () => {
      throw new DeliveryError({ kind: "transient", retryAfterMs: 60_000 }, "wait");
    };
    await manager.start();
    world.put("c1", "parked");
    await world.settle();
    await manager.stop();
    expect([world.outbox.entries.length, world.outbox.deadLetters, world.receipts("parked")]).toEqual([1, [], []]);
  });

  it("runs every step, also when a channel's stop throws, hangs, or its start never returned", async () => {
    const hangs = new PlainChannel();
    hangs.stop = () => new Promise(() => {});
    const throws = Object.assign(new RecordingChannel(), { name: "throws" });
    throws.stop = async () => {
      throw new Error("no");
    };
    const stuck = Object.assign(new PlainChannel(), { name: "stuck" });
    stuck.onStart = () => new Promise(() => {});
    const manager = world.manager("one", [hangs, throws, stuck]);
    void manager.start();
    await world.settle();
    const stopped = manager.stop();
    await world.clock.advance(40_000);
    await stopped;
    expect([...manager.health().values()].map(({ state }) => state)).toEqual(["stopped", "stopped", "stopped"]);
    expect([world.outbox.owners.size, stuck.stops]).toEqual([0, 1]);
  });
});

describe("lanes", () => {
  it("run one key in order and other keys beside it, and go on after a failure", async () => {
    const failures: string[] = [];
    const lanes = new Lanes((key, error) => failures.push(`${key} ${error}`));
    const log: string[] = [];
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    void lanes.add("a", async () => {
      await gate;
      log.push("a1");
      throw "broken";
    });
    void lanes.add("a", async () => void log.push("a2"));
    void lanes.add("b", async () => void log.push("b1"));
    await settle();
    expect([log, lanes.size]).toEqual([["b1"], 2]);
    open();
    await lanes.idle();
    expect([log, failures, lanes.size]).toEqual([["b1", "a1", "a2"], ["a broken"], 0]);
  });
});

describe("the clock of the machine", () => {
  it("ends a wait in time, or as soon as its signal aborts", async () => {
    const clock = createSystemClock();
    const startMs = clock.nowMs();
    await clock.sleep(20, new AbortController().signal);
    expect(clock.nowMs() - startMs).toBeGreaterThanOrEqual(15);
    const abort = new AbortController();
    const waiting = clock.sleep(1e9, abort.signal);
    abort.abort();
    await waiting;
    await clock.sleep(1e9, abort.signal);
  });
});
