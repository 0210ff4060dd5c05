import { afterEach, describe, expect, it } from "vitest";
import { ManualClock } from "../../fakes/manual-clock.js";
import { until } from "../../support/bus-fixture.js";
import { Inbound, pushBack } from "./inbound-harness.js";
import { said, update } from "./said.js";

const WEBHOOK = { url: "https://gate.example/telegram/webhook", secret: "s3cret_s3cret" };
const HEADER = "x-telegram-bot-api-secret-token";

let open: Inbound[] = [];
afterEach(async () => {
  await Promise.all(open.map((inbound) => inbound.close()));
  open = [];
});

async function made(clock?: ManualClock): Promise<Inbound> {
  const inbound = await Inbound.create({ webhook: WEBHOOK }, clock === undefined ? {} : { clock });
  open.push(inbound);
  return inbound;
}

const text = (content: string, id: number) => update({ message: said({ text: content, message_id: id }) }, id);

function bring(inbound: Inbound, body: unknown, secret: string | string[] | undefined = WEBHOOK.secret) {
  const door = inbound.channel.webhook;
  if (door === null) throw new Error("no door");
  return door.handle({ headers: { [HEADER]: secret }, body }, inbound.context);
}

describe("the door for updates", () => {
  it.each([
    ["a wrong secret", "s3cret_s3creT"],
    ["no secret", undefined],
    ["an empty one", ""],
    ["two of them", [WEBHOOK.secret, WEBHOOK.secret]],
  ])("stays shut for %s, and nothing is read", async (_, secret) => {
    const inbound = await made();
    const door = inbound.channel.webhook;
    const headers = secret === undefined ? {} : { [HEADER]: secret };
    expect(await door?.handle({ headers, body: text("x", 1) }, inbound.context)).toBe(401);
    expect(inbound.knocks).toEqual([]);
    expect(inbound.api.calls).toEqual([]);
  });

  it("says 200 only when it is stored, also on a process that does not own the account", async () => {
    const inbound = await made();
    let isStored = false;
    inbound.storing = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      isStored = true;
    };
    expect(await bring(inbound, text("hello", 1))).toBe(200);
    expect(isStored).toBe(true);
    expect(inbound.texts()).toEqual(["hello"]);
  });

  it.each(["BUS_OVERLOADED", "BUS_UNAVAILABLE"] as const)(
    "says 503 at %s, and takes it when it comes again",
    async (code) => {
      const inbound = await made();
      inbound.storing = pushBack(1, code);
      expect(await bring(inbound, text("again", 1))).toBe(503);
      expect(await bring(inbound, text("again", 1))).toBe(200);
      expect(inbound.texts()).toEqual(["again"]);
    },
  );

  it("says 503 while it cannot find out who it is", async () => {
    const inbound = await made();
    inbound.api.will("getMe", "reset");
    expect(await bring(inbound, text("x", 1))).toBe(503);
    expect(await bring(inbound, text("x", 1))).toBe(200);
  });

  it.each([
    ["not json {"],
    [Buffer.from("\xff")],
    [null],
    [[]],
    [7],
    [{}],
    [{ update_id: "x" }],
    [{ update_id: 1, message: 5 }],
  ])("says 200 to %j, since it would only come again", async (body) => {
    const inbound = await made();
    expect(await bring(inbound, body)).toBe(200);
    expect(inbound.accepted).toEqual([]);
    expect(inbound.log).toContain("skipped");
  });

  it("reads text and bytes", async () => {
    const inbound = await made();
    await bring(inbound, JSON.stringify(text("one", 1)));
    await bring(inbound, Buffer.from(JSON.stringify(text("two", 2))));
    expect(inbound.texts()).toEqual(["one", "two"]);
  });

  it("keeps the order of one chat when several come at once", async () => {
    const inbound = await made();
    await bring(inbound, text("before", 1));
    const ids = [2, 3, 4, 5, 6];
    inbound.admit = async ({ messageId }) => {
      // The later ones are let in sooner.
      for (let i = Number(messageId); i < 10; i += 1) await new Promise((resolve) => setImmediate(resolve));
      return { kind: "admitted", isOwner: false };
    };
    await Promise.all(ids.map((id) => bring(inbound, text(`m${id}`, id))));
    expect(inbound.texts()).toEqual(["before", ...ids.map((id) => `m${id}`)]);
  });

  it("takes one that is brought again while it is under way for the same, and fetches its file once", async () => {
    const inbound = await made();
    let give = (_: Buffer) => {};
    inbound.api.files.set("files/d", new Promise((resolve) => (give = resolve)));
    const brought = update({ message: said({ document: { file_id: "d" } }) }, 1);
    const first = bring(inbound, brought);
    await until(() => inbound.api.of("getFile").length === 1);
    const again = bring(inbound, brought);
    give(Buffer.from("text"));
    expect(await Promise.all([first, again])).toEqual([200, 200]);
    expect([inbound.accepted.length, inbound.api.of("getFile").length]).toEqual([1, 1]);
  });

  it("skips what fails by a bug", async () => {
    const inbound = await made();
    inbound.storing = async () => {
      throw new TypeError("a bug of ours");
    };
    expect(await bring(inbound, text("x", 9))).toBe(200);
    expect(inbound.log).toContain('"update":9');
  });
});

describe("webhook mode", () => {
  it("is told to the platform at start, and nothing is polled", async () => {
    const inbound = await made();
    await inbound.start();
    await until(() => inbound.channel.health().state === "running");
    expect(inbound.api.of("setWebhook")[0]?.params).toMatchObject({
      url: WEBHOOK.url,
      secret_token: WEBHOOK.secret,
      allowed_updates: expect.arrayContaining(["message"]),
    });
    expect(inbound.api.of("getUpdates")).toEqual([]);
    expect(inbound.log).not.toContain(WEBHOOK.secret);
  });

  it("takes the webhook back from who changed it", async () => {
    const clock = new ManualClock();
    const inbound = await made(clock);
    await inbound.start();
    await until(() => inbound.channel.health().state === "running");
    inbound.api.webhookUrl = "";
    await clock.advance(60_000);
    await until(() => inbound.api.of("setWebhook").length === 2);
  });

  it("says so while the platform cannot bring updates", async () => {
    const clock = new ManualClock();
    const inbound = await made(clock);
    await inbound.start();
    await until(() => inbound.channel.health().state === "running");
    const failing = { last_error_date: Math.floor(Date.now() / 1000), last_error_message: "Connection refused" };
    inbound.api.webhookInfo = { pending_update_count: 4, ...failing };
    await clock.advance(60_000);
    await until(() => inbound.channel.health().state === "failed");
    expect(inbound.channel.health()).toMatchObject({
      problem: expect.stringContaining("4 updates: Connection refused"),
      isDeaf: true,
    });
    inbound.api.webhookInfo = { pending_update_count: 0, ...failing };
    await clock.advance(60_000);
    await until(() => inbound.channel.health().state === "running");
  });

  it("is no door while updates are asked for", async () => {
    const inbound = await Inbound.create();
    open.push(inbound);
    expect(inbound.channel.webhook).toBeNull();
  });
});
