/** The bounded cache: what is taken out is gone, what was put back longest ago goes first. */
import { expect, it } from "vitest";
import { LruCache } from "../../src/session/cache.js";

it("keeps the newest, and counts putting the same key again as new", () => {
  const cache = new LruCache<string, number>(2);
  cache.put("a", 1);
  cache.put("b", 2);
  cache.put("a", 3);
  cache.put("c", 4);
  expect([cache.has("a"), cache.has("b"), cache.has("c")]).toEqual([true, false, true]);
  expect([cache.take("a"), cache.take("a"), cache.size]).toEqual([3, null, 1]);
});

it("keeps nothing at size 0", () => {
  const cache = new LruCache<string, number>(0);
  cache.put("a", 1);
  expect(cache.size).toBe(0);
});
