/** Old files are looked for again and again, past failures, until it is ended. */
import pino from "pino";
import { expect, test } from "vitest";
import { keepSweeping } from "../../src/media/keeper.js";

test("rounds follow each other, also a failed one, and none comes after its end", async () => {
  let rounds = 0;
  let onThird = (): void => {};
  const third = new Promise<void>((resolve) => {
    onThird = resolve;
  });
  const sweep = async (): Promise<number> => {
    rounds += 1;
    if (rounds === 3) onThird();
    if (rounds === 1) throw new Error("the disk is away");
    return 0;
  };
  const end = keepSweeping({ sweep }, pino({ level: "silent" }), 1);
  await third;
  await end();
  const before = rounds;
  for (let i = 0; i < 20; i += 1) await new Promise((resolve) => setTimeout(resolve, 2));
  expect(rounds).toBe(before);
});
