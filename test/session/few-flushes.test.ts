/** Flushes are bounded, so that a slow disk leaves threads for reads and appends. */
import { expect, test } from "vitest";
import { nodeIo, withFewFlushes } from "../../src/session/io.js";

test("no more than two flushes run at a time, and all are made", async () => {
  let running = 0;
  let most = 0;
  let made = 0;
  const ends: Array<() => void> = [];
  const io = withFewFlushes({
    ...nodeIo,
    sync: () => {
      running += 1;
      most = Math.max(most, running);
      return new Promise<void>((resolve) => ends.push(resolve)).then(() => {
        running -= 1;
        made += 1;
      });
    },
  });
  const handle = {} as Parameters<typeof io.sync>[0];
  const all = Promise.all(Array.from({ length: 7 }, () => io.sync(handle)));
  while (made < 7) {
    ends.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await all;
  expect(most).toBe(2);
});
