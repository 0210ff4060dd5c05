import { afterEach, describe, expect, it } from "vitest";
import { ManualClock } from "../../fakes/manual-clock.js";
import { until } from "../../support/bus-fixture.js";
import { Inbound } from "./inbound-harness.js";
import { outbound } from "./outbound.js";
import { PRIVATE, said, update } from "./said.js";

let open: Inbound[] = [];
afterEach(async () => {
  await Promise.all(open.map((inbound) => inbound.close()));
  open = [];
});

type Settings = Parameters<typeof Inbound.create>[0];

async function made(clock: ManualClock, settings: Settings = {}): Promise<Inbound> {
  const inbound = await Inbound.create(settings, { clock });
  open.push(inbound);
  return inbound;
}

async function running(clock: ManualClock): Promise<Inbound> {
  const inbound = await made(clock);
  await inbound.start();
  await until(() => inbound.channel.health().state === "running");
  await until(() => inbound.api.of("getUpdates").length === 2);
  return inbound;
}

const text = (content: string, id: number) => update({ message: said({ text: content, message_id: id }, PRIVATE) }, id);
const polls = (inbound: Inbound) => inbound.api.of("getUpdates").length;
const CONFLICT = {
  error: 409,
  description: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
};

describe("a request that never ends", () => {
  it("is given up and made anew, and nothing that came meanwhile is lost", async () => {
    const clock = new ManualClock();
    const inbound = await running(clock);
    // The long poll that is open now is the last thing this connection ever does.
    inbound.api.will("getUpdates", "hold");
    inbound.api.push(text("first", 1));
    await until(() => inbound.texts().length === 1);
    await until(() => polls(inbound) === 3);
    const timeout = Number(inbound.api.of("getUpdates")[2]?.params.timeout);
    inbound.api.push(text("second", 2));
    await clock.advance(timeout * 1000 + 29_000);
    expect(polls(inbound)).toBe(3);
    await clock.advance(1_500);
    await until(() => inbound.log.includes("not done within"));
    await until(async () => {
      await clock.advance(100);
      return inbound.texts().length === 2;
    });
  });

  it("is told when it lasts, whatever is sent meanwhile, and over when one comes back", async () => {
    const clock = new ManualClock();
    const inbound = await running(clock);
    inbound.api.will("getUpdates", ...Array.from({ length: 30 }, () => "hold" as const));
    inbound.api.push(text("wakes the long poll", 1));
    await until(() => polls(inbound) >= 3);
    await clock.advance(149_000);
    expect(inbound.channel.health().state).toBe("running");
    await inbound.channel.live?.working("again", outbound(""), new AbortController().signal);
    expect(inbound.api.of("sendChatAction")).toHaveLength(1);
    await clock.advance(3_000);
    expect(inbound.channel.health()).toMatchObject({
      state: "failed",
      problem: expect.stringMatching(/could not be asked for 15\d s/),
      advice: expect.stringContaining("network"),
    });
    // As its supervisor does; what was wrong is not over because it was started again.
    await inbound.channel.stop();
    await inbound.start();
    expect(inbound.channel.health()).toMatchObject({ problem: expect.stringMatching(/for 15\d s/), isDeaf: true });
    await until(async () => {
      await clock.advance(31_000);
      return inbound.channel.health().state === "running";
    });
  });
});

describe("another program with the same token", () => {
  it("is named, left alone for a long poll, and forgotten when it has gone", async () => {
    const clock = new ManualClock();
    const inbound = await running(clock);
    inbound.api.will("getUpdates", CONFLICT);
    inbound.api.push(text("wakes the long poll", 1));
    await until(() => inbound.channel.health().state === "failed" || clock.advance(100).then(() => false));
    expect(inbound.channel.health()).toMatchObject({
      problem: expect.stringContaining("another program polls"),
      advice: expect.stringContaining("Stop the other program"),
      isDeaf: true,
    });
    const asked = polls(inbound);
    await clock.advance(34_000);
    expect(polls(inbound)).toBe(asked);
    await clock.advance(1_500);
    await until(() => inbound.channel.health().state === "running");
  });

  it("is no longer named when something else is wrong, which is told until a round trip", async () => {
    const clock = new ManualClock();
    const inbound = await running(clock);
    inbound.api.will("getUpdates", CONFLICT, { error: 502, description: "Bad Gateway" });
    inbound.api.push(text("wakes the long poll", 1));
    await until(() => inbound.channel.health().state === "failed" || clock.advance(100).then(() => false));
    await clock.advance(35_000);
    await until(() => inbound.log.includes("Bad Gateway"));
    expect(inbound.channel.health()).toMatchObject({
      problem: "Telegram could not be asked: getUpdates: 502 Bad Gateway",
      isDeaf: true,
    });
    await clock.advance(1_000);
    await until(() => inbound.channel.health().state === "running");
  });

  it("is not fought by starting again", async () => {
    const clock = new ManualClock();
    const inbound = await made(clock);
    inbound.api.will("getUpdates", CONFLICT);
    await inbound.start();
    await until(() => inbound.channel.health().state === "failed");
    await inbound.channel.stop();
    await inbound.start();
    await clock.advance(30_000);
    expect(polls(inbound)).toBe(1);
    expect(inbound.channel.health()).toMatchObject({
      problem: expect.stringContaining("another program"),
      isDeaf: true,
    });
    await clock.advance(6_000);
    await until(() => inbound.channel.health().state === "running");
  });

  it("that set a webhook loses it, and the updates stay", async () => {
    const clock = new ManualClock();
    const inbound = await made(clock);
    inbound.api.webhookUrl = "https://elsewhere.example/hook";
    inbound.api.push(text("kept", 1));
    await inbound.start();
    await until(() => inbound.texts().length === 1);
    expect(inbound.api.of("deleteWebhook")[0]?.params).toEqual({ drop_pending_updates: false });
    expect(inbound.log).not.toContain("elsewhere");
  });
});

describe("a platform that asks to wait", () => {
  it("is left alone exactly so long", async () => {
    const clock = new ManualClock();
    const inbound = await made(clock);
    inbound.api.will("getUpdates", { error: 429, description: "Too Many Requests: retry after 17", retryAfter: 17 });
    await inbound.start();
    await until(() => inbound.log.includes('"waitMs":17000'));
    await clock.advance(16_990);
    expect(polls(inbound)).toBe(1);
    await clock.advance(20);
    await until(() => inbound.channel.health().state === "running");
  });
});

describe("a network that fails", () => {
  it("is tried again after 1, 2, 4 … 60 s", async () => {
    const clock = new ManualClock();
    const inbound = await made(clock);
    inbound.api.will("getMe", ...Array.from({ length: 8 }, () => "reset" as const));
    await inbound.start();
    const waits: number[] = [];
    for (let tries = 1; tries <= 8; tries += 1) {
      await until(() => inbound.lines.filter((line) => line.includes("waitMs")).length === tries);
      waits.push(JSON.parse(inbound.lines.filter((line) => line.includes("waitMs"))[tries - 1] ?? "{}").waitMs);
      await clock.advance(waits.at(-1) ?? 0);
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    await until(() => inbound.channel.health().state === "running");
  });

  it("recovers from a 502", async () => {
    const clock = new ManualClock();
    const inbound = await made(clock);
    inbound.api.will("getUpdates", { error: 502, description: "Bad Gateway" });
    await inbound.start();
    await until(() => inbound.log.includes('"waitMs":1000'));
    await clock.advance(1_000);
    await until(() => inbound.channel.health().state === "running");
  });
});

describe("a token", () => {
  it.each([null, "", "12345", "not:a-token-at-all", `1234:${"x".repeat(29)} ${"y".repeat(9)}`])(
    "that cannot be one (%j) is refused before use, and not repeated",
    async (token) => {
      const inbound = await made(new ManualClock(), { token });
      const problem = await inbound.start().then(
        () => null,
        (error: unknown) => error,
      );
      expect(problem).toMatchObject({ code: "TELEGRAM_TOKEN_INVALID" });
      expect(inbound.channel.health()).toMatchObject({ state: "failed", isPermanent: true });
      expect(inbound.channel.account).toBe("telegram:unknown");
      expect(inbound.api.calls).toEqual([]);
      if (token) expect(`${String(problem)} ${inbound.log}`).not.toContain(token);
    },
  );

  it("that the platform does not know fails for good, and is not tried again", async () => {
    const clock = new ManualClock();
    const wrong = `9999:${"x".repeat(35)}`;
    const inbound = await made(clock, { token: wrong });
    await expect(inbound.start()).rejects.toMatchObject({ code: "TELEGRAM_TOKEN_INVALID" });
    expect(inbound.channel.health()).toMatchObject({ state: "failed", isPermanent: true });
    await clock.advance(600_000);
    expect(inbound.api.calls).toHaveLength(1);
    expect(inbound.log).not.toContain(wrong);
  });

  it("that is revoked while polling fails for good", async () => {
    const clock = new ManualClock();
    const inbound = await running(clock);
    inbound.api.will("getUpdates", { error: 401, description: "Unauthorized" });
    inbound.api.push(text("wakes the long poll", 1));
    await until(() => inbound.channel.health().state === "failed" || clock.advance(100).then(() => false));
    expect(inbound.channel.health()).toMatchObject({ isPermanent: true });
  });

  it("never reaches the log, whatever fails", async () => {
    const clock = new ManualClock();
    const inbound = await made(clock);
    const { api } = inbound;
    const echo = `Bad Request: https://api.telegram.org/bot${api.token}/getMe`;
    api.will("getMe", "reset", { error: 400, description: echo });
    api.will("setMyCommands", "reset");
    api.will("getUpdates", "reset", { raw: "nonsense" }, { error: 500, description: echo });
    api.files.set("files/d", "reset");
    await inbound.start();
    await until(async () => {
      await clock.advance(500);
      return inbound.channel.health().state === "running";
    });
    api.push(update({ message: said({ document: { file_id: "d" } }) }, 1));
    await until(async () => {
      await clock.advance(500);
      return inbound.accepted.length === 1;
    });
    expect(inbound.lines.length).toBeGreaterThan(5);
    const secret = api.token.split(":")[1] ?? "";
    expect(
      `${inbound.log} ${JSON.stringify(inbound.accepted)} ${JSON.stringify(inbound.channel.health())}`,
    ).not.toContain(secret);
  });
});

describe("stopping", () => {
  it("ends the open request and asks for nothing more", async () => {
    const clock = new ManualClock();
    const inbound = await running(clock);
    await inbound.channel.stop();
    await inbound.channel.stop();
    expect(inbound.channel.health()).toEqual({ state: "stopped" });
    const asked = polls(inbound);
    await clock.advance(120_000);
    expect(polls(inbound)).toBe(asked);
  });
});

describe("the menu of commands", () => {
  it("is shown from the one table, without what is for owners", async () => {
    const inbound = await running(new ManualClock());
    const shown = JSON.stringify(inbound.api.of("setMyCommands")[0]?.params);
    for (const name of ["help", "stop", "new"]) expect(shown).toContain(`"command":"${name}"`);
    expect(shown).not.toContain("pairing");
  });

  it("that is refused holds nothing up", async () => {
    const inbound = await made(new ManualClock());
    inbound.api.will("setMyCommands", { error: 400, description: "Bad Request: BOT_COMMAND_INVALID" });
    await inbound.start();
    await until(() => inbound.channel.health().state === "running");
    expect(inbound.log).toContain("the menu of commands could not be set");
  });
});
