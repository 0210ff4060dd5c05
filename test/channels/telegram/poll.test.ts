import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { inboundKeyOf } from "../../../src/bus/messages.js";
import { NanogateError } from "../../../src/errors.js";
import { until } from "../../support/bus-fixture.js";
import { Inbound, pushBack } from "./inbound-harness.js";
import { ANN, GROUP, PRIVATE, said, update } from "./said.js";

let open: Inbound[] = [];
afterEach(async () => {
  await Promise.all(open.map((inbound) => inbound.close()));
  open = [];
});

async function started(...args: Parameters<typeof Inbound.create>): Promise<Inbound> {
  const inbound = await Inbound.create(...args);
  open.push(inbound);
  await inbound.start();
  return inbound;
}

const text = (content: string, id: number, chat: object = PRIVATE) =>
  update({ message: said({ text: content, message_id: id }, chat) }, id);

describe("polling", () => {
  it("asks for what it reads, hands it in, and acknowledges it by asking for later ones", async () => {
    const { api, accepted, channel, memory } = await started();
    await until(() => channel.health().state === "running");
    api.push(text("one", 10), text("two", 11));
    await until(() => accepted.length === 2);
    await until(() => api.waiting().length === 0);
    expect(accepted.map(({ content }) => content)).toEqual(["one", "two"]);
    const [first] = api.of("getUpdates");
    expect(first?.params).toMatchObject({ timeout: 0, allowed_updates: expect.arrayContaining(["edited_message"]) });
    expect(api.of("getUpdates").at(-1)?.params).toMatchObject({ offset: 12, timeout: 30 });
    expect(JSON.parse(memory.kept.get("offset") ?? "")).toMatchObject({ next: 12 });
  });

  it("goes on where another process was", async () => {
    const inbound = await Inbound.create();
    open.push(inbound);
    inbound.memory.kept.set("offset", JSON.stringify({ next: 8, seenMs: Date.now() }));
    inbound.api.push(text("done", 7), text("new", 8));
    await inbound.start();
    await until(() => inbound.accepted.length === 1);
    expect(inbound.texts()).toEqual(["new"]);
  });

  it("asks without an offset when the numbers may have begun anew", async () => {
    const inbound = await Inbound.create();
    open.push(inbound);
    inbound.memory.kept.set("offset", JSON.stringify({ next: 8000, seenMs: Date.now() - 8 * 24 * 3_600_000 }));
    inbound.api.push(text("low number", 5));
    await inbound.start();
    await until(() => inbound.api.waiting().length === 0);
    expect(inbound.texts()).toEqual(["low number"]);
  });

  it("acknowledges nothing before it is stored, whatever came after it", async () => {
    const inbound = await started();
    let store = () => {};
    const stored = new Promise<void>((resolve) => {
      store = resolve;
    });
    inbound.storing = ({ content }) => (content === "slow" ? stored : Promise.resolve());
    inbound.api.push(text("slow", 20), text("other chat", 21, { ...PRIVATE, id: 8 }), text("behind", 22));
    await until(() => inbound.accepted.length === 1);
    // The other chat is not held up, not even what comes later.
    inbound.api.push(text("later", 23, { ...PRIVATE, id: 9 }));
    await until(() => inbound.accepted.length === 2);
    expect(inbound.texts()).toEqual(["other chat", "later"]);
    expect(inbound.api.waiting()).toEqual([20, 21, 22, 23]);
    for (const { params } of inbound.api.of("getUpdates")) expect(Number(params.offset ?? 20)).toBe(20);
    store();
    await until(() => inbound.api.waiting().length === 0);
    expect(inbound.texts()).toEqual(["other chat", "later", "slow", "behind"]);
  });

  it.each(["BUS_OVERLOADED", "BUS_UNAVAILABLE"] as const)(
    "stops asking while the bus says %s, then tries again",
    async (code) => {
      const inbound = await started();
      await until(() => inbound.api.of("getUpdates").at(-1)?.params.timeout === 30);
      let store = () => {};
      const room = new Promise<void>((resolve) => {
        store = resolve;
      });
      const refusing = pushBack(2, code);
      let tries = 0;
      inbound.storing = async () => {
        tries += 1;
        await refusing();
        await room;
      };
      inbound.api.push(text("must not be lost", 30));
      await until(() => tries === 2);
      const asked = inbound.api.of("getUpdates").length;
      await until(() => tries === 3);
      // 250 ms and 500 ms of waiting, without one question in between.
      expect(inbound.api.of("getUpdates").length).toBeLessThanOrEqual(asked + 1);
      expect(inbound.api.waiting()).toEqual([30]);
      store();
      await until(() => inbound.api.waiting().length === 0);
      expect(inbound.texts()).toEqual(["must not be lost"]);
    },
  );

  it("tries again when it cannot be known whether somebody may speak", async () => {
    const inbound = await started();
    const refusing = pushBack(1, "BUS_UNAVAILABLE");
    inbound.admit = async () => {
      await refusing();
      return { kind: "admitted", isOwner: true };
    };
    inbound.api.push(text("hello", 1));
    await until(() => inbound.accepted.length === 1);
    expect(inbound.accepted[0]?.isOwner).toBe(true);
  });

  it("skips what fails in any other way, with its number, and moves on", async () => {
    const inbound = await started();
    inbound.storing = async ({ content }) => {
      if (content === "bad") throw new TypeError("a bug of ours");
    };
    inbound.api.push(text("bad", 40), text("good", 41));
    await until(() => inbound.api.waiting().length === 0);
    expect(inbound.texts()).toEqual(["good"]);
    expect(inbound.lines.find((line) => line.includes("a bug of ours"))).toContain('"update":40');
  });

  it("moves on past anything that has a number", async () => {
    const inbound = await started();
    let next = 100;
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.dictionary(fc.constantFrom("message", "edited_message", "callback_query", "poll", "x"), fc.jsonValue()),
          { minLength: 1, maxLength: 20 },
        ),
        async (batch) => {
          const numbers = batch.map(() => next++);
          inbound.api.push(
            ...batch.map((junk, at) => ({ ...junk, update_id: numbers[at] ?? 0 })),
            text("after", next++),
          );
          await until(() => inbound.api.waiting().length === 0);
          expect(inbound.texts().at(-1)).toBe("after");
        },
      ),
      { numRuns: 15 },
    );
    expect(inbound.channel.health().state).toBe("running");
  });

  it("does not spin on updates without numbers", async () => {
    const inbound = await started();
    await until(() => inbound.channel.health().state === "running");
    inbound.api.will("getUpdates", { raw: [{ message: {} }] }, { raw: "nonsense" });
    inbound.api.push(text("wakes the long poll", 1));
    await until(() => inbound.api.waiting().length === 0);
    inbound.api.push(text("fine", 2));
    await until(() => inbound.texts().includes("fine"));
  });

  it("does nothing for somebody who may not speak", async () => {
    const inbound = await started();
    inbound.admit = async () => ({ kind: "refused", why: "a stranger" });
    const photo = [{ file_id: "secret" }];
    inbound.api.push(
      update({ message: said({ photo }) }, 1),
      update({ callback_query: { id: "q", from: ANN, data: "x", message: said({}) } }, 2),
    );
    await until(() => inbound.api.waiting().length === 0);
    expect(inbound.accepted).toEqual([]);
    const visible = inbound.api.calls.filter(
      ({ method }) => !/^(getMe|getUpdates|getWebhookInfo|setMyCommands)$/.test(method),
    );
    expect(visible).toEqual([]);
  });

  it("leaves what is not stored to whoever comes next", async () => {
    const inbound = await started();
    inbound.storing = pushBack(1000, "BUS_UNAVAILABLE");
    inbound.api.push(text("waits", 50));
    await until(() => inbound.log.includes("nothing can be stored"));
    await inbound.channel.stop();
    expect(inbound.api.waiting()).toEqual([50]);
    inbound.storing = async () => {};
    await inbound.start();
    await until(() => inbound.api.waiting().length === 0);
    expect(inbound.texts()).toEqual(["waits"]);
  });
});

describe("presses", () => {
  it("are acknowledged and lose their buttons", async () => {
    const { api, accepted } = await started();
    api.push(update({ callback_query: { id: "q1", from: ANN, data: "yes", message: said({ message_id: 30 }) } }, 1));
    await until(() => accepted.length === 1);
    expect(accepted[0]).toMatchObject({ kind: "callback", content: "yes" });
    expect(api.of("answerCallbackQuery")[0]?.params).toMatchObject({ callback_query_id: "q1" });
    expect(api.of("editMessageReplyMarkup")[0]?.params).toEqual({ chat_id: 7, message_id: 30 });
  });

  it("of one button, quickly one after the other, are one message; of two buttons they are two", async () => {
    const { api, accepted } = await started();
    const press = (id: string, data: string) => ({ id, from: ANN, data, message: said({ message_id: 30 }) });
    const presses = [press("q1", "yes"), press("q2", "yes"), press("q3", "no")];
    api.push(...presses.map((callback_query, at) => update({ callback_query }, at + 1)));
    await until(() => accepted.length === 3);
    const [first, again, other] = accepted.map(inboundKeyOf);
    expect(again).toBe(first);
    expect(other).not.toBe(first);
    expect(api.of("answerCallbackQuery")).toHaveLength(3);
  });

  it("count although they cannot be acknowledged", async () => {
    const { api, accepted } = await started();
    api.will("answerCallbackQuery", { error: 400, description: "Bad Request: query is too old" });
    api.push(update({ callback_query: { id: "q1", from: ANN, data: "yes", message: said({ message_id: 30 }) } }, 1));
    await until(() => accepted.length === 1);
  });
});

describe("a group that got another id", () => {
  it("keeps the names under which it is known", async () => {
    const inbound = await started();
    const fresh = { id: -1001, type: "supergroup" };
    inbound.api.push(update({ message: said({ migrate_to_chat_id: -1001 }, GROUP) }, 1));
    await until(() => inbound.memory.kept.size === 2);
    inbound.api.push(text("hi", 2, fresh));
    await until(() => inbound.accepted.length === 1);
    expect(inbound.knocks[0]?.scene).toMatchObject({ chatIds: ["-1001", "-50"] });
    // Also after a restart, or when another process saw it move.
    await inbound.channel.stop();
    await inbound.start();
    inbound.api.push(text("hi", 3, fresh));
    await until(() => inbound.accepted.length === 2);
    expect(inbound.accepted[1]?.route.chatId).toBe("-1001");
    inbound.memory.kept.set("moved:-1002", "-60");
    inbound.api.push(text("hi", 4, { ...fresh, id: -1002 }));
    await until(() => inbound.knocks.length === 3);
    expect(inbound.knocks[2]?.scene).toMatchObject({ chatIds: ["-1002", "-60"] });
  });

  it("is not judged while its former name cannot be read", async () => {
    const inbound = await started();
    const { get } = inbound.memory;
    let left = 1;
    inbound.memory.get = async (name) => {
      left -= 1;
      if (left >= 0) throw new NanogateError("BUS_UNAVAILABLE", "the memory is away");
      return get(name);
    };
    inbound.memory.kept.set("moved:-1001", "-50");
    inbound.api.push(text("hi", 1, { id: -1001, type: "supergroup" }));
    await until(() => inbound.accepted.length === 1);
    expect(inbound.knocks.map(({ scene }) => scene)).toMatchObject([{ chatIds: ["-1001", "-50"] }]);
  });
});
