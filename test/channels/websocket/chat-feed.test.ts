/** A feed over logs that answer strangely: it passes on no hole, and tells its followers instead. */
import pino from "pino";
import { describe, expect, it } from "vitest";
import { ChatFeed } from "../../../src/channels/websocket/chat-feed.js";
import type { Follower } from "../../../src/channels/websocket/follower.js";
import type { ChatEvent, ChatHead, ChatLog, ChatRead } from "../../../src/channels/websocket/ports.js";
import { settle } from "../../fakes/manual-clock.js";
import { outbound } from "../../fakes/outbound.js";

const event = (seq: number): ChatEvent => ({ seq, message: outbound(`e${seq}`) });

/** A feed over scripted answers, and one follower's record of it. */
function scripted(heads: ChatHead[], reads: ChatRead[]) {
  let emit: (live: ChatEvent) => void = () => {};
  const log: ChatLog = {
    head: async () => heads.shift() ?? { epoch: 1, seq: 0 },
    read: async () => reads.shift() ?? { kind: "resync", head: { epoch: 9, seq: 99 } },
    follow: async (_account, _chatId, onEvent) => {
      emit = onEvent;
      return async () => {};
    },
    onReconnect: () => () => {},
    claim: async (_account, _chatId, identity) => identity,
  };
  const told: string[] = [];
  const follower: Follower = {
    isGone: () => false,
    attached: (head) => told.push(`attached ${head.epoch}/${head.seq}`),
    resync: (head) => told.push(`resync ${head.epoch}/${head.seq}`),
    deliver: (text) => told.push(text),
    flushed: async () => {},
  };
  const render = ({ seq }: ChatEvent) => `${seq}`;
  const logger = pino({ level: "silent" });
  const feed = new ChatFeed({ log, account: "a", chatId: "c", render, logger, retryMs: 1 });
  return { feed, follower, told, emit: (live: ChatEvent) => emit(live) };
}

describe("a feed", () => {
  it.each<[string, ChatRead]>([
    ["a hole", { kind: "events", head: { epoch: 1, seq: 5 }, events: [event(3), event(5)] }],
    ["nothing although there is more", { kind: "events", head: { epoch: 1, seq: 5 }, events: [] }],
    ["a log that ends before the reader's place", { kind: "events", head: { epoch: 1, seq: 1 }, events: [] }],
  ])("takes %s for a resync when joining", async (_what, answer) => {
    const { feed, follower, told } = scripted([{ epoch: 1, seq: 5 }], [answer]);
    await feed.join(follower, { after: 2, epoch: null });
    expect(told[0]).toBe(`resync 1/${answer.head.seq}`);
  });

  it("takes a hole for a resync while it follows, and goes on behind it", async () => {
    const hole: ChatRead = { kind: "events", head: { epoch: 1, seq: 5 }, events: [event(4), event(5)] };
    const { feed, follower, told, emit } = scripted(
      [
        { epoch: 1, seq: 2 },
        { epoch: 1, seq: 2 },
      ],
      [hole],
    );
    await feed.join(follower, null);
    emit(event(5));
    await settle();
    emit(event(6));
    expect(told).toEqual(["attached 1/2", "resync 1/5", "6"]);
  });

  it("does not ask for ever for an event that the log does not have", async () => {
    const same: ChatRead = { kind: "events", head: { epoch: 1, seq: 2 }, events: [] };
    const { feed, follower, told, emit } = scripted(
      [
        { epoch: 1, seq: 2 },
        { epoch: 1, seq: 2 },
      ],
      [same],
    );
    await feed.join(follower, null);
    emit(event(7));
    await settle();
    emit(event(3));
    expect(told).toEqual(["attached 1/2", "3"]);
  });

  it("ignores what it has passed on already", async () => {
    const { feed, follower, told, emit } = scripted(
      [
        { epoch: 1, seq: 2 },
        { epoch: 1, seq: 2 },
      ],
      [],
    );
    await feed.join(follower, null);
    for (const seq of [3, 2, 3, 4, 3]) emit(event(seq));
    expect(told).toEqual(["attached 1/2", "3", "4"]);
  });
});
