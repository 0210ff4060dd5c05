/**
 * Pairings over a real Redis, two processes on it: a code pairs one person once, few wait, tries are limited, and nothing of
 * it depends on who asks first or how often.
 */
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it, test } from "vitest";
import type { Outgoing } from "../../src/bus/messages.js";
import type { PairingAnswer, PairingStore } from "../../src/channels/ports.js";
import { createKeys } from "../../src/redis/keys.js";
import { PAIRING_LIMITS, type PairingLimits } from "../../src/redis/pairings.js";
import { type BusFixture, createBusFixture, outboxRoute, outgoing, until } from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";

let redis: TestRedis;
const open: BusFixture[] = [];
beforeAll(async () => {
  redis = await TestRedis.start();
});
afterEach(async () => {
  for (const fixture of open.splice(0)) await fixture.close();
});
afterAll(() => redis.stop());

interface Given {
  limits?: Partial<PairingLimits>;
  hasOwners?: boolean;
}

async function processes({ limits = {}, hasOwners = false }: Given = {}) {
  const one = await createBusFixture(redis.address);
  const two = await createBusFixture(redis.address, { prefix: one.prefix });
  open.push(one, two);
  const of = ({ stack }: BusFixture): PairingStore => stack.pairings(hasOwners, { ...PAIRING_LIMITS, ...limits });
  return { mine: of(one), theirs: of(two), keys: createKeys(one.prefix, "ws"), fixture: one };
}

const welcome = (code: string): Outgoing => outgoing(outboxRoute("c"), `welcome.${code}`, "Hello.", { type: "notice" });
const ask = (store: PairingStore, senderId: string, channel = "chat") => store.request({ channel, senderId, welcome });
const codeOf = (answer: PairingAnswer): string => {
  if (answer.kind !== "code") throw new Error(`no code but ${answer.kind}`);
  return answer.request.code;
};
const calls = { count: 0 };
const decide = (store: PairingStore, code: string, verdict: "approve" | "deny" = "approve", by = "owner") => {
  calls.count += 1;
  return store.decide({ verdict, code, by, call: `call ${calls.count}` });
};

describe("a code", () => {
  it("is of 8 plain letters and digits, valid for ten minutes, and the same while it waits", async () => {
    const { mine, theirs } = await processes();
    const answer = await ask(mine, "7");
    const code = codeOf(answer);
    expect(code).toMatch(/^[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}$/);
    if (answer.kind !== "code") throw new Error("unreachable");
    expect(answer.request).toMatchObject({ channel: "chat", senderId: "7", leftMs: 600_000 });
    const again = await ask(theirs, "7");
    expect(again).toMatchObject({ kind: "code", tellingMs: answer.tellingMs, request: { code } });
    expect(await mine.pending()).toEqual([
      expect.objectContaining({ code, senderId: "7", expiresMs: answer.request.expiresMs }),
    ]);
    expect(codeOf(await ask(mine, "7", "other"))).not.toBe(code);
  });

  it("is one when two processes are asked at once", async () => {
    const { mine, theirs } = await processes();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(i % 2 === 0 ? mine : theirs, "7")));
    expect(new Set(answers.map(codeOf)).size).toBe(1);
  });

  it("pairs once, at whichever process, when many approve it at once; the person is told once", async () => {
    const { mine, theirs, fixture } = await processes();
    const code = codeOf(await ask(mine, "7"));
    const tries = Array.from({ length: 10 }, (_, i) =>
      decide(i % 2 === 0 ? mine : theirs, code, "approve", `owner ${i}`),
    );
    const kinds = (await Promise.all(tries)).map(({ kind }) => kind);
    expect(kinds.sort()).toEqual(["done", ...Array.from({ length: 9 }, () => "used")]);
    expect(await theirs.find("chat", "7")).toEqual({ isOwner: true });
    expect(await theirs.find("other", "7")).toBeNull();
    expect(await mine.pending()).toEqual([]);
    const told = await fixture.stack.outbox.read("bot", "0", 1);
    expect(told.map(({ outgoing: { message } }) => [message.id, message.content])).toEqual([
      [`welcome.${code}`, "Hello."],
    ]);
    expect(await ask(mine, "7")).toEqual({ kind: "paired", isOwner: true });
  });

  it("is taken however it is typed, and what can be none is unknown", async () => {
    const { mine } = await processes({ limits: { maxTries: 100 } });
    const code = codeOf(await ask(mine, "7"));
    for (const wrong of [
      "",
      "-",
      "AAAA-AAA",
      `${code}A`,
      "*",
      "'; FLUSHALL",
      "x".repeat(100_000),
      "ÄÄÄÄ-ÄÄÄÄ",
      "0O0O-1I1I",
    ])
      expect(await decide(mine, wrong)).toEqual({ kind: "unknown" });
    expect(await decide(mine, ` ${code.toLowerCase().replace("-", " ")} `)).toMatchObject({
      kind: "done",
      senderId: "7",
    });
  });

  it("that was denied lets nobody in, and brings no new one for a while", async () => {
    const { mine, theirs, fixture } = await processes();
    const code = codeOf(await ask(mine, "7"));
    expect(await decide(mine, code, "deny")).toEqual({ kind: "done", channel: "chat", senderId: "7", isOwner: false });
    expect(await decide(theirs, code)).toEqual({ kind: "used" });
    expect(await ask(theirs, "7")).toEqual({ kind: "denied" });
    expect(await mine.find("chat", "7")).toBeNull();
    expect(await fixture.stack.outbox.read("bot", "0", 1)).toEqual([]);
    const late = (await processes({ limits: { deniedMs: 10 } })).mine;
    await decide(late, codeOf(await ask(late, "7")), "deny");
    await until(async () => (await ask(late, "7")).kind === "code");
  });

  it("expires, is told apart from an unknown one, and leaves its place to others", async () => {
    const { mine } = await processes({ limits: { ttlMs: 40, maxWaiting: 1 } });
    const code = codeOf(await ask(mine, "7"));
    await until(async () => (await mine.pending()).length === 0);
    expect(await decide(mine, code)).toEqual({ kind: "expired" });
    const next = codeOf(await ask(mine, "8"));
    expect(next).not.toBe(code);
    expect(await mine.find("chat", "7")).toBeNull();
  });

  it("is forgotten after a day, and nothing else stays either", async () => {
    const { mine, keys } = await processes();
    await decide(mine, codeOf(await ask(mine, "7")));
    await decide(mine, "none");
    await decide(mine, codeOf(await ask(mine, "8")), "deny");
    await ask(mine, "9");
    const raw = redis.client();
    const names = await raw.keys(`${keys.base}pr:*`);
    const forever = [keys.of("paired"), keys.of("pairedFirst"), keys.of("pairingWaiting")];
    for (const name of names.filter((each) => !forever.includes(each))) {
      const leftMs = await raw.pttl(name);
      expect(leftMs).toBeGreaterThan(0);
      expect(leftMs).toBeLessThanOrEqual(87_000_000);
    }
    raw.disconnect();
    expect(names.length).toBeGreaterThan(8);
  });
});

describe("the first ever paired", () => {
  it("is an owner, and nobody after them, also when they are gone", async () => {
    const { mine } = await processes();
    const first = await decide(mine, codeOf(await ask(mine, "1")));
    const second = await decide(mine, codeOf(await ask(mine, "2", "other")));
    expect([first, second]).toMatchObject([{ isOwner: true }, { isOwner: false }]);
    expect(await mine.paired()).toMatchObject([
      { channel: "chat", senderId: "1", isOwner: true },
      { channel: "other", senderId: "2", isOwner: false },
    ]);
    expect(await mine.revoke("chat", "1")).toBe(true);
    expect(await decide(mine, codeOf(await ask(mine, "3")))).toMatchObject({ isOwner: false });
  });

  it("is none where owners are configured, and one of two at once", async () => {
    const { mine } = await processes({ hasOwners: true });
    expect(await decide(mine, codeOf(await ask(mine, "1")))).toMatchObject({ isOwner: false });
    const other = await processes();
    const codes = [codeOf(await ask(other.mine, "1")), codeOf(await ask(other.theirs, "2"))] as const;
    const both = await Promise.all([decide(other.mine, codes[0]), decide(other.theirs, codes[1])]);
    expect(both.filter((each) => each.kind === "done" && each.isOwner)).toHaveLength(1);
  });
});

it("a revoked person is a stranger again at once, for every process", async () => {
  const { mine, theirs } = await processes();
  await decide(mine, codeOf(await ask(mine, "7")));
  expect(await theirs.find("chat", "7")).not.toBeNull();
  expect(await mine.revoke("chat", "7")).toBe(true);
  expect(await theirs.find("chat", "7")).toBeNull();
  expect(await theirs.revoke("chat", "7")).toBe(false);
  expect((await ask(theirs, "7")).kind).toBe("code");
});

it("no more than three wait in a channel; who comes then is told once, and gets a code when there is a place", async () => {
  const { mine, theirs } = await processes();
  const answers = await Promise.all(["1", "2", "3", "4", "5"].map((id, i) => ask(i % 2 === 0 ? mine : theirs, id)));
  expect(answers.filter(({ kind }) => kind === "code")).toHaveLength(3);
  const late = await ask(mine, "late");
  expect(late).toMatchObject({ kind: "full" });
  expect(await ask(theirs, "late")).toEqual(late);
  expect((await ask(mine, "1", "other")).kind).toBe("code");
  const [waiting] = await mine.pending();
  await decide(mine, waiting?.code ?? "", "deny");
  expect((await ask(theirs, "late")).kind).toBe("code");
});

it("one telling counts for its time, then another begins", async () => {
  const { mine } = await processes({ limits: { tellMs: 20, fullMs: 20, maxWaiting: 1 } });
  for (const senderId of ["1", "2"]) {
    const first = await ask(mine, senderId);
    if (first.kind !== "code" && first.kind !== "full") throw new Error(first.kind);
    await until(async () => {
      const next = await ask(mine, senderId);
      return next.kind === first.kind && next.tellingMs > first.tellingMs;
    });
  }
});

describe("tries", () => {
  it("that fail lock the one who tries, for a right code too, and nobody else", async () => {
    const { mine, theirs } = await processes();
    const code = codeOf(await ask(mine, "7"));
    for (let i = 0; i < 5; i += 1)
      expect(await decide(i % 2 === 0 ? mine : theirs, "none")).toEqual({ kind: "unknown" });
    for (const verdict of ["approve", "deny"] as const) {
      const refused = await decide(theirs, code, verdict);
      expect(refused).toEqual({ kind: "locked", forMs: expect.any(Number) });
      if (refused.kind === "locked") expect(refused.forMs).toBeGreaterThan(590_000);
    }
    expect(await mine.find("chat", "7")).toBeNull();
    expect(await decide(mine, code, "approve", "another owner")).toMatchObject({ kind: "done" });
  });

  it("of all together lock all", async () => {
    const { mine } = await processes({ limits: { maxTriesOfAll: 6 } });
    const code = codeOf(await ask(mine, "7"));
    for (let i = 0; i < 6; i += 1) await decide(mine, "none", "approve", `owner ${i}`);
    expect((await decide(mine, code, "approve", "a new one")).kind).toBe("locked");
  });

  it("count also for expired and used codes; a lock ends", async () => {
    const { mine } = await processes({ limits: { maxTries: 2, lockMs: 1_000 } });
    const code = codeOf(await ask(mine, "7"));
    await decide(mine, code);
    expect((await decide(mine, code)).kind).toBe("used");
    await decide(mine, code);
    expect((await decide(mine, code)).kind).toBe("locked");
    await until(async () => (await decide(mine, code)).kind === "used");
  });

  it("that are repeated because their reply was lost count once and say the same", async () => {
    const { mine, theirs } = await processes({ limits: { maxTries: 2 } });
    const code = codeOf(await ask(mine, "7"));
    const wrong = { verdict: "approve", code: "none", by: "owner", call: "wrong" } as const;
    for (let i = 0; i < 5; i += 1) expect(await theirs.decide(wrong)).toEqual({ kind: "unknown" });
    const right = { ...wrong, code, call: "right" };
    const first = await mine.decide(right);
    expect(first.kind).toBe("done");
    expect(await theirs.decide(right)).toEqual(first);
  });
});

type Step = { do: "ask" | "revoke"; who: string } | { do: "approve" | "deny"; nth: number };

/** One step of a channel; what it brought is noted. */
async function take(store: PairingStore, step: Step, seen: { channel: string; codes: string[]; done: string[] }) {
  switch (step.do) {
    case "ask": {
      const answer = await ask(store, step.who, seen.channel);
      if (answer.kind === "code") seen.codes.push(answer.request.code);
      return;
    }
    case "revoke":
      await store.revoke(seen.channel, step.who);
      return;
    default: {
      const code = seen.codes[step.nth % Math.max(1, seen.codes.length)] ?? "none";
      if ((await decide(store, code, step.do)).kind === "done") seen.done.push(code);
    }
  }
}

test("no order of requests, decisions and revocations gives a fourth code or a second use", async () => {
  const people = fc.constantFrom("1", "2", "3", "4", "5", "6");
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ do: fc.constantFrom("ask" as const, "ask" as const, "revoke" as const), who: people }),
    fc.record({ do: fc.constantFrom("approve" as const, "deny" as const), nth: fc.nat(9) }),
  );
  const { mine, theirs } = await processes({ limits: { maxTries: 1e9, maxTriesOfAll: 1e9, deniedMs: 1 } });
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      run += 1;
      const seen = { channel: `c${run}`, codes: [], done: [] };
      // Three at a time, so that steps of two processes meet.
      for (let at = 0; at < steps.length; at += 3) {
        const together = steps.slice(at, at + 3);
        await Promise.all(together.map((each, i) => take(i % 2 === 0 ? mine : theirs, each, seen)));
        const waiting = (await mine.pending()).filter(({ channel }) => channel === seen.channel);
        expect(waiting.length).toBeLessThanOrEqual(3);
        expect(new Set(waiting.map(({ senderId }) => senderId)).size).toBe(waiting.length);
        expect(new Set(seen.done).size).toBe(seen.done.length);
      }
    }),
    { numRuns: 60 },
  );
});

test("what was acknowledged survives a Redis that lost its last moments", async () => {
  const { mine, theirs } = await processes();
  const before = codeOf(await ask(mine, "1"));
  await redis.keep();
  const code = codeOf(await ask(mine, "7"));
  expect(await decide(mine, code)).toMatchObject({ kind: "done", senderId: "7" });
  expect(await decide(mine, before, "deny")).toMatchObject({ kind: "done", senderId: "1" });
  await redis.rollBack();
  await redis.up();
  await until(async () => (await theirs.find("chat", "7")) !== null);
  expect(await mine.find("chat", "7")).toEqual({ isOwner: true });
  expect((await ask(theirs, "1")).kind).toBe("denied");
  expect((await decide(theirs, code)).kind).toBe("used");
});
