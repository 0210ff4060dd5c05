/** What an operator sees of deliveries: every send under its outcome, and lines that carry the ids of what was sent. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { DeliveryError, type DeliveryFailure } from "../../src/channels/channel.js";
import { Delivering } from "./delivery-harness.js";

let world: Delivering;
beforeEach(() => {
  world = new Delivering();
});
afterEach(() => world.close());

const outcomes = () => world.metrics.labelsOf("delivery_seconds").map(({ outcome }) => outcome);

function script(...failures: Array<DeliveryFailure | Error | null>): void {
  world.channel.onSend = async () => {
    const failure = failures.shift() ?? null;
    if (failure instanceof Error) throw failure;
    if (failure !== null) throw new DeliveryError(failure, "the platform says no");
  };
}

it("counts each try of each part under what became of it", async () => {
  script({ kind: "transient", retryAfterMs: 10 }, null, { kind: "unknown" }, new Error("odd"), { kind: "permanent" });
  for (const text of ["a|b", "c", "d"]) world.put("c1", text);
  await world.manager().start();
  await world.settle();
  await world.clock.advance(10);
  expect(outcomes()).toEqual(["transient", "sent", "unknown", "unknown", "permanent"]);
  expect(world.metrics.labelsOf("delivery_seconds")[0]?.channel).toBe("recording");
});

it("says what was delivered and what was not, by outbound id, turn, account and chat, and never what was said", async () => {
  script(null, { kind: "permanent" });
  for (const text of ["fine", "refused"]) world.put("c1", text);
  await world.manager().start();
  await world.settle();
  const lines = world.log.map((line) => JSON.parse(line)).filter((line) => line.outbound !== undefined);
  const ids = { account: "bot", chatId: "c1", channel: "recording", turn: expect.any(String) };
  expect(lines).toMatchObject([
    { ...ids, outbound: "fine", msg: "delivered" },
    { ...ids, outbound: "refused", msg: "a delivery failed" },
  ]);
});
