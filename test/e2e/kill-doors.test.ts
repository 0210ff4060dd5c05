/** The process a client is connected to is killed or frozen: the client goes on at another, with one turn for one message. */
import { afterEach, describe, expect, it } from "vitest";
import { Client } from "./support/client.js";
import { Stage } from "./support/stage.js";
import { COUNTED_CALL, countedRuns, endsOf, seedCounter, storyFaults } from "./support/story.js";

let stage: Stage;
afterEach(() => stage.close());

describe.each(["publish.stored", "publish.queued"])("door killed at %s", (point) => {
  it("one turn when the client repeats its message at another door", async () => {
    stage = await Stage.open();
    await seedCounter(stage);
    const [first, second] = await Promise.all([
      stage.gateway({ role: "channels", fault: `kill:${point}` }),
      stage.gateway({ role: "channels" }),
      stage.gateway({ role: "worker" }),
    ]);
    const client = new Client("c1");
    await client.connect(await first.url("alice"));
    client.post(COUNTED_CALL, "m1");
    await first.ended;
    expect(client.replies.filter((reply) => reply.event === "message_accepted")).toEqual([]);
    await client.connect(await second.url("alice"));
    const turn = await client.say(COUNTED_CALL, "m1");
    expect((await client.end("m1")).turn_id).toBe(turn);
    expect(await client.say(COUNTED_CALL, "m1")).toBe(turn);
    await client.say("second", "m2");
    await client.end("m2");
    expect(await storyFaults(stage, client)).toEqual([]);
    expect(endsOf(client)).toEqual(["m1: completed", "m2: completed"]);
    expect(stage.model.asked(COUNTED_CALL)).toBe(2);
    expect(await countedRuns(stage)).toBe(1);
  });

  it("an answer also when the client only comes back", async () => {
    stage = await Stage.open();
    const [first, second] = await Promise.all([
      stage.gateway({ role: "channels", fault: `kill:${point}` }),
      stage.gateway({ role: "channels" }),
      stage.gateway({ role: "worker" }),
    ]);
    const client = new Client("c1");
    await client.connect(await first.url("alice"));
    client.post("alone", "m1");
    await first.ended;
    await client.connect(await second.url("alice"));
    await client.end("m1");
    expect(await storyFaults(stage, client)).toEqual([]);
    expect(client.answers).toEqual(["re: alone"]);
    expect(stage.model.asked("alone")).toBe(1);
  });
});

describe("door that stops between the answer and its client", () => {
  /** A client at a door that froze before the answer came, and what another connection of the same person saw. */
  async function frozenBeforeAnswer() {
    stage = await Stage.open();
    const [first, second] = await Promise.all([
      stage.gateway({ role: "channels" }),
      stage.gateway({ role: "channels" }),
      stage.gateway({ role: "worker" }),
    ]);
    const [client, other] = [new Client("c1"), new Client("c1")];
    await client.connect(await first.url("alice"));
    await other.connect(await second.url("alice"));
    const release = stage.model.hold("slowly");
    await client.say("slowly, please", "m1");
    first.freeze();
    release();
    await other.end("m1");
    expect(endsOf(client)).toEqual([]);
    return { first, second, client, other };
  }

  it("killed: the client resumes at another door", async () => {
    const { first, second, client, other } = await frozenBeforeAnswer();
    await first.kill();
    await client.connect(await second.url("alice"));
    await client.end("m1");
    expect(await storyFaults(stage, client)).toEqual([]);
    expect(client.events).toEqual(other.events);
    expect(stage.model.asked("slowly")).toBe(1);
  });

  it("frozen for longer than a lease: the client gets everything when it wakes", async () => {
    const { first, client, other } = await frozenBeforeAnswer();
    // So that the sleep outlasts the lease: another turn, whose worker has to be replaced by the end of its own.
    const worker = await stage.gateway({ role: "worker" });
    await other.say("second", "m2");
    await other.end("m2");
    await worker.stop();
    first.thaw();
    await client.end("m2");
    expect(await storyFaults(stage, client)).toEqual([]);
    expect(client.events).toEqual(other.events);
  });
});

describe("one process that is everything", () => {
  it.each(["publish.stored", "append.after#2", "settle.before", "settle.after"])("killed at %s", async (point) => {
    stage = await Stage.open();
    await seedCounter(stage);
    const first = await stage.gateway({ fault: `kill:${point}` });
    const client = new Client("c1");
    await client.connect(await first.url("alice"));
    client.post(COUNTED_CALL, "m1");
    await first.ended;
    const second = await stage.gateway();
    await client.connect(await second.url("alice"));
    await client.say(COUNTED_CALL, "m1");
    await client.end("m1");
    expect(await storyFaults(stage, client)).toEqual([]);
    expect(endsOf(client)).toEqual(["m1: completed"]);
    expect(stage.model.asked(COUNTED_CALL)).toBe(2);
    expect(await countedRuns(stage)).toBeLessThanOrEqual(1);
  });
});
