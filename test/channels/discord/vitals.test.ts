/** Health by what comes in, the account of identifies and the token's shape, on a clock that the test moves. */
import { describe, expect, it } from "vitest";
import { IDENTIFY_RULES, IdentifyBudget, mayIdentify } from "../../../src/channels/discord/budget.js";
import { accountOf, botIdOf } from "../../../src/channels/discord/token.js";
import { PATIENCE, Vitals } from "../../../src/channels/discord/vitals.js";
import { ManualClock } from "../../fakes/manual-clock.js";
import { MapMemory } from "./harness.js";

const DAY_MS = 86_400_000;

describe("the account of identifies", () => {
  it("stays under 500 a day, however often the bot is started and fails", async () => {
    const memory = new MapMemory();
    let nowMs = 1_700_000_000_000;
    const wallMs = () => nowMs;
    const times: number[] = [];
    const endMs = nowMs + 2 * DAY_MS;
    while (nowMs < endMs) {
      // Each time a new life: nothing is remembered but what is kept.
      const budget = new IdentifyBudget({ memory, rules: IDENTIFY_RULES, wallMs });
      if ((await budget.take()) === 0) times.push(nowMs);
      nowMs += 1000;
    }
    const most = Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + DAY_MS).length));
    expect(most).toBeLessThan(500);
    expect(most).toBeGreaterThan(300);
    expect(Math.min(...times.slice(1).map((at, n) => at - (times[n] ?? 0)))).toBeGreaterThanOrEqual(5000);
  });

  it("says exactly when the next one may be made", async () => {
    let nowMs = 1000;
    const rules = { burst: 1, everyMs: 60_000, spacingMs: 0 };
    const budget = new IdentifyBudget({ memory: new MapMemory(), rules, wallMs: () => nowMs });
    expect(await budget.take()).toBe(0);
    expect(await budget.take()).toBe(60_000);
    nowMs += 59_999;
    expect(await budget.take()).toBe(1);
    nowMs += 1;
    expect(await budget.take()).toBe(0);
  });

  it("gives nothing while its memory is away, and nothing for a clock that was set back", async () => {
    const memory = new MapMemory();
    let nowMs = 10 * DAY_MS;
    const budget = new IdentifyBudget({
      memory,
      rules: { burst: 1, everyMs: 60_000, spacingMs: 0 },
      wallMs: () => nowMs,
    });
    memory.isAway = true;
    expect(await budget.take()).toBeGreaterThan(0);
    memory.isAway = false;
    expect(await budget.take()).toBe(0);
    nowMs -= DAY_MS;
    expect(await budget.take()).toBe(60_000);
  });

  it.each([
    [1000, 51, true],
    [1000, 50, false],
    [10, 1, true],
    [10, 0, false],
  ])("leaves some of Discord's own %i: with %i left %s", (total, remaining, may) => {
    expect(mayIdentify({ total, remaining, resetAfterMs: 0 })).toBe(may);
  });
});

describe("vitals", () => {
  function make() {
    const clock = new ManualClock();
    const vitals = new Vitals({ clock, patience: PATIENCE });
    vitals.starting();
    return { clock, vitals };
  }
  const stateAfter = async ({ clock, vitals }: ReturnType<typeof make>, ms: number) => {
    await clock.advance(ms);
    return vitals.health().state;
  };

  it("need heartbeats: two missed are a failure", async () => {
    const life = make();
    life.vitals.up();
    expect(await stateAfter(life, PATIENCE.stallMs)).toBe("running");
    life.vitals.beat();
    expect(await stateAfter(life, PATIENCE.stallMs)).toBe("running");
    expect(await stateAfter(life, 1)).toBe("failed");
    life.vitals.up();
    expect(life.vitals.health().state).toBe("failed");
  });

  it("do not count what the bot sends itself, and miss the echo of it", async () => {
    const life = make();
    life.vitals.up();
    await life.clock.advance(1);
    const begunMs = life.clock.nowMs();
    life.vitals.sent(begunMs);
    await life.clock.advance(PATIENCE.echoMs / 2);
    life.vitals.beat();
    life.vitals.sent(life.clock.nowMs());
    expect(await stateAfter(life, PATIENCE.echoMs / 2)).toBe("running");
    expect(await stateAfter(life, 1)).toBe("failed");
  });

  it("are content with an echo that comes before the answer to the call", async () => {
    const life = make();
    life.vitals.up();
    const begunMs = life.clock.nowMs();
    await life.clock.advance(20);
    life.vitals.heard();
    await life.clock.advance(5);
    life.vitals.sent(begunMs);
    for (let n = 0; n < 4; n += 1) {
      expect(await stateAfter(life, PATIENCE.echoMs)).toBe("running");
      life.vitals.beat();
    }
  });

  it("give a lost connection a minute, and one that hangs 20 s", async () => {
    const lost = make();
    lost.vitals.closed(1006);
    await lost.clock.advance(PATIENCE.downMs - 1);
    lost.vitals.closed(1006);
    expect(await stateAfter(lost, 1)).toBe("starting");
    expect(await stateAfter(lost, 1)).toBe("failed");
    const hangs = make();
    hangs.vitals.shaking();
    expect(await stateAfter(hangs, PATIENCE.handshakeMs + 1)).toBe("failed");
  });

  it("are not fooled by a connection that comes and goes", async () => {
    const life = make();
    life.vitals.up();
    for (let ms = 0; ms <= PATIENCE.downMs; ms += 1000) {
      life.vitals.closed(1006);
      await life.clock.advance(500);
      life.vitals.shaking();
      await life.clock.advance(500);
    }
    expect(life.vitals.health().state).toBe("failed");
  });

  it("wait for leave to identify without a failure", async () => {
    const life = make();
    life.vitals.shaking();
    life.vitals.waiting();
    expect(await stateAfter(life, PATIENCE.downMs * 2)).toBe("starting");
  });

  it("stay failed for good after a code that only a person can mend", async () => {
    const life = make();
    life.vitals.closed(4014);
    life.vitals.closed(1006);
    life.vitals.up();
    life.vitals.stopped();
    expect(life.vitals.health()).toMatchObject({ state: "failed", isPermanent: true });
  });
});

describe("a token", () => {
  const id = "1234567890123456789";
  const first = Buffer.from(id).toString("base64").replaceAll("=", "");

  it("names its bot", () => {
    const token = `${first}.abcdef.${"x".repeat(38)}`;
    expect(botIdOf(token)).toBe(id);
    expect(accountOf(token)).toBe(`discord:${id}`);
  });

  it.each([
    "",
    "abc",
    `${first}.abcdef`,
    `${first}.abcdef.short`,
    `bm90IGEgbnVtYmVy.abcdef.${"x".repeat(38)}`,
    `Bot ${first}.abcdef.${"x".repeat(38)}`,
  ])("of the shape %j is none", (token) => {
    expect(botIdOf(token)).toBeNull();
  });
});
