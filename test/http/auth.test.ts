/** `POST /auth/token` on a real port: who gets a token, and how each refusal reads. */
import pino from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { NanogateError } from "../../src/errors.js";
import { type AuthRoute, issuerOf } from "../../src/http/auth.js";
import { createHttpServer } from "../../src/http/server.js";
import { MemoryTokens } from "../fakes/memory-tokens.js";

const SECRET = "the-gateway-token";
const RIGHT = { authorization: `Bearer ${SECRET}` };
const open: Array<() => Promise<void>> = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});

async function start(auth: Partial<AuthRoute> = {}) {
  const tokens = new MemoryTokens();
  const server = await createHttpServer({
    host: "127.0.0.1",
    port: 0,
    role: "all",
    version: "1.2.3",
    logger: pino({ level: "silent" }),
    readiness: async () => [],
    metrics: null,
    client: {
      webhook: () => null,
      upgrade: null,
      page: { version: "1.2.3", model: "demo", isDemo: true },
      auth: { token: SECRET, issue: (clientId) => tokens.issue(clientId), maxPerMinute: 1_000, ...auth },
    },
  });
  open.push(() => server.close(100));
  const { port } = await server.listen();
  const post = async (body: unknown, headers: Record<string, string> = RIGHT) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await fetch(`http://127.0.0.1:${port}/auth/token`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: text,
    });
    return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Record<string, unknown> };
  };
  return { post, tokens };
}

it("gives a token for the client that was named, kept by no cache", async () => {
  const { post, tokens } = await start();
  for (const clientId of ["alice", "x".repeat(128), "Zoë 🦊"]) {
    const { status, headers, body } = await post({ client_id: clientId, extra: true });
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(body).toEqual({ token: expect.any(String), client_id: clientId, expires_in: 300 });
    expect(await tokens.redeem(String(body.token))).toBe(clientId);
  }
});

describe("is refused", () => {
  it.each<[string, Record<string, string>]>([
    ["without a token", {}],
    ["with a wrong one", { authorization: "Bearer wrong" }],
    ["with the right one and more", { authorization: `Bearer ${SECRET}x` }],
    ["with another scheme", { authorization: `Basic ${SECRET}` }],
    ["with an empty one", { authorization: "Bearer " }],
  ])("%s: 401, whatever the body is", async (_what, headers) => {
    const { post } = await start();
    for (const body of [{ client_id: "alice" }, "{broken", "x".repeat(10_000)]) {
      const answer = await post(body, headers);
      expect([answer.status, answer.body.code]).toEqual([401, "unauthorized"]);
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
      expect(JSON.stringify(answer.body)).not.toContain(SECRET);
    }
  });

  it("where no token is configured: 403, also with an empty one", async () => {
    const { post } = await start({ token: null });
    const answers = [await post({ client_id: "a" }), await post({ client_id: "a" }, { authorization: "Bearer " })];
    for (const { status, body } of answers) expect([status, body.code]).toEqual([403, "no_gateway_token"]);
  });

  it.each<[string, unknown]>([
    ["no client", {}],
    ["an empty client", { client_id: "" }],
    ["a blank client", { client_id: "  " }],
    ["a client that is no text", { client_id: 7 }],
    ["a client that is too long", { client_id: "x".repeat(129) }],
    ["a client with a line break", { client_id: "a\nb" }],
    ["half a character", '{"client_id":"\\ud800"}'],
    ["a list", []],
    ["broken JSON", "{broken"],
    ["nothing", ""],
  ])("for %s: 400", async (_what, body) => {
    const { post } = await start();
    const answer = await post(body);
    expect([answer.status, answer.body]).toEqual([400, { code: "bad_request", detail: expect.any(String) }]);
  });

  it("for a body of another kind or size: 415, 413", async () => {
    const { post } = await start();
    expect(
      (await post("client_id=alice", { ...RIGHT, "content-type": "application/x-www-form-urlencoded" })).status,
    ).toBe(415);
    expect((await post({ client_id: "x".repeat(5_000) })).status).toBe(413);
  });

  it("when too many tokens are alive: 429 with the time to wait", async () => {
    const { post, tokens } = await start();
    tokens.fullForMs = 2_100;
    const { status, headers, body } = await post({ client_id: "alice" });
    expect([status, headers.get("retry-after"), body.code]).toEqual([429, "3", "too_many_tokens"]);
  });

  it("when one address asks too often, right or wrong: 429 with the time to wait", async () => {
    const { post } = await start({ maxPerMinute: 3 });
    expect((await post({ client_id: "alice" })).status).toBe(200);
    for (let i = 0; i < 2; i += 1) expect((await post({}, { authorization: "Bearer guess" })).status).toBe(401);
    for (const headers of [RIGHT, { authorization: "Bearer guess" }]) {
      const { status, headers: given, body } = await post({ client_id: "alice" }, headers);
      expect([status, body.code]).toEqual([429, "rate_limited"]);
      expect(Number(given.get("retry-after"))).toBeGreaterThan(0);
    }
  });

  it("while Redis is away: 503; for a fault of ours: 500 without its reason", async () => {
    const away = await start({ issue: issuerOf(() => null) });
    const { status, headers, body } = await away.post({ client_id: "alice" });
    expect([status, body.code, headers.get("retry-after")]).toEqual([503, "unavailable", "1"]);
    const full = await start({ issue: () => Promise.reject(new NanogateError("BUS_OVERLOADED", "full")) });
    expect((await full.post({ client_id: "alice" })).status).toBe(503);
    const broken = await start({ issue: () => Promise.reject(new Error("password hunter2")) });
    const fault = await broken.post({ client_id: "alice" });
    expect([fault.status, JSON.stringify(fault.body).includes("hunter2")]).toEqual([500, false]);
  });
});
