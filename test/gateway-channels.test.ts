/** A channel that does not come up holds the gateway's start up for a bounded time only. */
import { expect, test } from "vitest";
import { startWithin } from "../src/gateway-channels.js";

test("a start that ends is waited for, one that does not is left to go on", async () => {
  let isStarted = false;
  const start = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    isStarted = true;
  };
  await startWithin({ start }, 60_000);
  expect(isStarted).toBe(true);
  await startWithin({ start: () => new Promise<void>(() => {}) }, 5);
});
