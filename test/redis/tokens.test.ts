/** One-time tokens over a real Redis, two processes on it: each lets in at most once, whatever is repeated or lost. */
import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { noMetrics } from "../../src/metrics.js";
import { createKeys } from "../../src/redis/keys.js";
import { Scripts } from "../../src/redis/scripts.js";
import { RedisTokens, TOKEN_LIMITS, type TokenLimits } from "../../src/redis/tokens.js";
import { type BusFixture, createBusFixture } from "../support/bus-fixture.js";
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

async function processes(limits: Partial<TokenLimits> = {}) {
  const mine = await createBusFixture(redis.address);
  const theirs = await createBusFixture(redis.address, { prefix: mine.prefix });
  open.push(mine, theirs);
  const keys = createKeys(mine.prefix, "ws");
  const defaults = { owner: "o", leaseMs: 600, maxTries: 3, giveUpNotice: "", maxTurns: 0 };
  const of = ({ stack }: BusFixture) => {
    const scripts = new Scripts({ client: stack.client, keys, defaults, deadlineMs: 5_000, metrics: noMetrics });
    return { scripts, tokens: new RedisTokens({ scripts, limits: { ...TOKEN_LIMITS, ...limits } }) };
  };
  return { keys, mine: of(mine), theirs: of(theirs), stack: mine.stack };
}

const isOk = (reply: unknown): boolean => Array.isArray(reply) && reply[0] === "ok";

async function issued(tokens: RedisTokens, clientId = "alice"): Promise<string> {
  const answer = await tokens.issue(clientId);
  if (!answer.ok) throw new Error("no token was issued");
  return answer.token;
}

it("lets in once, at whichever process, when many present it at once", async () => {
  const { mine, theirs } = await processes();
  const token = await issued(mine.tokens, "Zoë 1 🦊");
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? mine : theirs).tokens.redeem(token)),
  );
  expect(answers.filter((clientId) => clientId !== null)).toEqual(["Zoë 1 🦊"]);
});

it("is long, random, unknown to Redis but for its digest, and gone from it in time", async () => {
  const { mine, stack, keys } = await processes();
  const [token, other] = [await issued(mine.tokens), await issued(mine.tokens)];
  expect(token).toMatch(/^ngt_[A-Za-z0-9_-]{43}$/);
  expect(other).not.toBe(token);
  const raw = redis.client();
  const names = await raw.keys(`${keys.base}*`);
  const dump = JSON.stringify([names, await raw.zrange(keys.of("tokens"), "0", "-1")]);
  expect(dump).not.toContain(token.slice(4));
  const kept = names.filter((name) => name.startsWith(keys.of("token")) && name !== keys.of("tokens"));
  expect(kept.length).toBeGreaterThanOrEqual(2);
  for (const name of [...kept, keys.of("tokens")]) {
    const leftMs = await raw.pttl(name);
    expect(leftMs).toBeGreaterThan(290_000);
    expect(leftMs).toBeLessThanOrEqual(300_000);
  }
  raw.disconnect();
  expect(stack.tokens).toBeInstanceOf(RedisTokens);
});

it("knows no token that was never issued, and asks Redis only about what could be one", async () => {
  const { mine } = await processes();
  expect(await mine.tokens.redeem(`ngt_${"x".repeat(43)}`)).toBeNull();
  const deaf = new RedisTokens({ scripts: { run: () => Promise.reject(new Error("asked")) }, limits: TOKEN_LIMITS });
  for (const text of ["", "ngt_", "x".repeat(5_000), `ngt_${"x".repeat(44)}`])
    expect(await deaf.redeem(text)).toBeNull();
  await expect(deaf.redeem(`ngt_${"x".repeat(43)}`)).rejects.toThrow("asked");
});

it("expires", async () => {
  const here = await processes({ ttlMs: 30 });
  const { mine } = here;
  const token = await issued(mine.tokens);
  const { keys } = here;
  const raw = redis.client();
  const kept = `${keys.of("token")}${createHash("sha256").update(token).digest("base64url")}`;
  const deadline = performance.now() + 5_000;
  while ((await raw.exists(kept)) === 1 && performance.now() < deadline) await raw.ping();
  raw.disconnect();
  expect(await mine.tokens.redeem(token)).toBeNull();
});

it("gives a repeated call what its lost reply held, and another call nothing", async () => {
  const { mine } = await processes();
  const one = { token: "digest", client: "alice", ttlMs: 300_000, most: 1 };
  expect(await mine.scripts.run("token-issue", one)).toEqual(["ok"]);
  expect(await mine.scripts.run("token-issue", one)).toEqual(["ok"]);
  const use = { token: "digest", call: "c1" };
  for (let i = 0; i < 2; i += 1) expect(await mine.scripts.run("token-redeem", use)).toEqual(["ok", "alice"]);
  expect(await mine.scripts.run("token-redeem", { ...use, call: "c2" })).toEqual(["none"]);
});

describe("too many alive", () => {
  it("are refused with the time until a place is free; a used one frees its place at once", async () => {
    const { mine, theirs } = await processes({ maxAlive: 2 });
    const token = await issued(mine.tokens);
    await issued(theirs.tokens);
    const full = await mine.tokens.issue("bob");
    expect(full).toEqual({ ok: false, retryAfterMs: expect.any(Number) });
    if (full.ok) throw new Error("unreachable");
    expect(full.retryAfterMs).toBeGreaterThan(290_000);
    await theirs.tokens.redeem(token);
    await issued(mine.tokens, "bob");
    expect((await theirs.tokens.issue("carol")).ok).toBe(false);
  });

  it("are counted without those that expired", async () => {
    const { mine } = await processes();
    const issue = (token: string, ttlMs: number) =>
      mine.scripts.run("token-issue", { token, client: "a", ttlMs, most: 2 });
    expect([await issue("short", 20), await issue("long", 300_000)]).toEqual([["ok"], ["ok"]]);
    let again = await issue("next", 300_000);
    const deadline = performance.now() + 5_000;
    while (!isOk(again) && performance.now() < deadline) again = await issue("next", 300_000);
    expect(again).toEqual(["ok"]);
    expect(await issue("one more", 300_000)).toMatchObject(["full", expect.any(String)]);
  });
});

it("is void after Redis came back without the moment in which it was used", async () => {
  const { mine } = await processes();
  const token = await issued(mine.tokens);
  // The issue is in the copy, the use is not.
  await redis.keep();
  expect(await mine.tokens.redeem(token)).toBe("alice");
  await redis.rollBack();
  await redis.up();
  expect(await mine.tokens.redeem(token)).toBeNull();
  await issued(mine.tokens);
});
