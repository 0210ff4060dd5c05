/** `/metrics`: behind the token where there is one, open where there is none, absent where nothing is measured. */
import fastify from "fastify";
import { expect, it } from "vitest";
import { addMetricsRoute } from "../../src/http/metrics.js";

const TOKEN = "a-token-of-this-test";

async function ask(token: string | null, authorization?: string) {
  const app = fastify();
  addMetricsRoute(app, { contentType: "text/plain; version=0.0.4", text: async () => "nanogate_x 1\n", token });
  const headers = authorization === undefined ? {} : { authorization };
  const { statusCode, body, headers: got } = await app.inject({ url: "/metrics", headers });
  await app.close();
  return { statusCode, body, type: got["content-type"], cache: got["cache-control"] };
}

it("gives the text where no token is set", async () => {
  expect(await ask(null)).toMatchObject({
    statusCode: 200,
    body: "nanogate_x 1\n",
    type: "text/plain; version=0.0.4",
    cache: "no-store",
  });
});

it("gives it to whoever has the token", async () => {
  expect(await ask(TOKEN, `Bearer ${TOKEN}`)).toMatchObject({ statusCode: 200, body: "nanogate_x 1\n" });
});

it.each([undefined, "", "Bearer ", "Bearer wrong", `Basic ${TOKEN}`, `Bearer ${TOKEN}x`, TOKEN])(
  "refuses %j, and repeats nothing of it",
  async (authorization) => {
    const { statusCode, body } = await ask(TOKEN, authorization);
    expect(statusCode).toBe(401);
    expect(body).not.toContain("nanogate_x");
    expect(body).not.toContain(TOKEN);
  },
);
