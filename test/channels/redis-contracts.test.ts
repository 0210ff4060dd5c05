/** The real outbox and the real chat logs obey the same contracts as their stand-ins, two processes over one server. */
import { afterAll, beforeAll } from "vitest";
import type { OutboundMessage, Outgoing, Route } from "../../src/bus/messages.js";
import { createKeys } from "../../src/redis/keys.js";
import { chatEventsContract } from "../contract/chat-events.js";
import { outboxStoreContract } from "../contract/outbox-store.js";
import { createBusFixture } from "../support/bus-fixture.js";
import { TestRedis } from "../support/redis-server.js";

let redis: TestRedis;
beforeAll(async () => {
  redis = await TestRedis.start();
});
afterAll(() => redis.stop());

/** Two processes on sessions of their own. */
async function twoProcesses() {
  const mine = await createBusFixture(redis.address);
  const theirs = await createBusFixture(redis.address, { prefix: mine.prefix });
  const close = async () => {
    await theirs.close();
    await mine.close();
  };
  return { mine: mine.stack, theirs: theirs.stack, keys: createKeys(mine.prefix, "ws"), close };
}

outboxStoreContract("Redis", async () => {
  const { mine, theirs, close } = await twoProcesses();
  return {
    mine: mine.outbox,
    theirs: theirs.outbox,
    put: async (outgoing) => void (await mine.intake.reply([outgoing])),
    deadLetters: () => mine.outbox.deadLetters(),
    close,
  };
});

chatEventsContract("Redis", async () => {
  const { mine, theirs, keys, close } = await twoProcesses();
  const say = (account: string, chatId: string, message: OutboundMessage): Outgoing => {
    const route: Route = { via: "events", account, channel: "web", chatId, isStreaming: true };
    return { route, message };
  };
  return {
    mine: mine.chatEvents,
    theirs: theirs.chatEvents,
    append: async (account, chatId, messages) => {
      for (const message of messages) await mine.intake.reply([say(account, chatId, message)]);
    },
    loseTail: async (account, chatId, count) => {
      const raw = redis.client();
      const events = keys.of("events", `${account}:${chatId}`);
      const newest = await raw.xrevrange(events, "+", "-", "COUNT", count);
      for (const [id] of newest) await raw.xdel(events, id);
      const left = await raw.hincrby(keys.of("chat", `${account}:${chatId}`), "seq", -count);
      await raw.call("XSETID", events, `${left}-0`);
      raw.disconnect();
      await redis.kill();
      await redis.up();
    },
    trim: async (account, chatId, count) => {
      const raw = redis.client();
      await raw.xtrim(keys.of("events", `${account}:${chatId}`), "MAXLEN", "=", count);
      raw.disconnect();
    },
    close,
  };
});
