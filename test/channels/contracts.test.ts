/** The in-memory stand-ins obey the ports they stand in for. */

import { chatEventsContract } from "../contract/chat-events.js";
import { outboxStoreContract } from "../contract/outbox-store.js";
import { MemoryChatLogs } from "../fakes/memory-chat-events.js";
import { MemoryOutbox } from "../fakes/memory-outbox.js";

outboxStoreContract("in memory", async () => {
  const outbox = new MemoryOutbox(() => performance.now());
  return {
    mine: outbox.process("mine"),
    theirs: outbox.process("theirs"),
    put: async (outgoing) => outbox.put(outgoing),
    deadLetters: async () => outbox.deadLetters,
    close: async () => {},
  };
});

chatEventsContract("in memory", async () => {
  const logs = new MemoryChatLogs();
  return {
    mine: logs.process(),
    theirs: logs.process(),
    append: async (account, chatId, messages) => {
      for (const message of messages) logs.append(account, chatId, message);
    },
    loseTail: async (account, chatId, count) => logs.loseTail(account, chatId, count),
    trim: async (account, chatId, count) => {
      const { events } = logs.log(account, chatId);
      events.splice(0, events.length - count);
    },
    close: async () => {},
  };
});
