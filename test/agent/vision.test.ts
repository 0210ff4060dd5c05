/** Which images a model is shown, and what it is told of the others. */
import { describe, expect, test } from "vitest";
import type { PromptRow } from "../../src/agent/context.js";
import type { ImageSource } from "../../src/agent/media-ports.js";
import { createVision } from "../../src/agent/vision.js";
import type { MediaRef } from "../../src/bus/messages.js";

const image = (path: string): MediaRef => ({ path, mime: "image/png", name: `${path}.png`, bytes: 3 });
const user = (content: string, ...paths: string[]): PromptRow => ({
  role: "user",
  content,
  ...(paths.length === 0 ? {} : { images: paths.map(image) }),
});

/** Every file is an image of its own name, but those that begin with "x". */
function source(bytes = (path: string) => Buffer.from(path)) {
  const asked: string[] = [];
  const images: ImageSource = {
    async read({ path }) {
      asked.push(path);
      if (path.startsWith("x")) return { kind: "refused", why: "it cannot be read" };
      return { kind: "image", mime: "image/png", bytes: bytes(path) };
    },
  };
  return { asked, vision: createVision({ images }) };
}

const never = new AbortController().signal;
const shown = (path: string) => ({ mime: "image/png", base64: Buffer.from(path).toString("base64") });

describe("images", () => {
  test("are put into their rows; rows without any pass as they are, and nothing is asked for them", async () => {
    const { vision, asked } = source();
    const rows: PromptRow[] = [
      { role: "system", content: "s" },
      user("a"),
      { role: "assistant", content: "b", toolCalls: [] },
      user("c", "1", "2"),
    ];
    expect(await vision.show(rows, never)).toEqual([
      ...rows.slice(0, 3),
      { role: "user", content: "c", images: [shown("1"), shown("2")] },
    ]);
    expect(asked.sort()).toEqual(["1", "2"]);
    expect(await source().vision.show(rows.slice(0, 3), never)).toEqual(rows.slice(0, 3));
  });

  test("that cannot be shown are named with the reason", async () => {
    expect(await source().vision.show([user("c", "x1", "2")], never)).toEqual([
      { role: "user", content: "c\n(x1.png is not shown: it cannot be read.)", images: [shown("2")] },
    ]);
  });

  test("that a later row repeats are shown there, once", async () => {
    const { vision, asked } = source();
    const rows = await vision.show([user("a", "1"), user("again", "1", "2")], never);
    expect(rows).toEqual([
      { role: "user", content: "a" },
      { role: "user", content: "again", images: [shown("1"), shown("2")] },
    ]);
    expect(asked).toHaveLength(2);
  });

  test("are at most twenty, the newest; the others are not even read", async () => {
    const { vision, asked } = source();
    const paths = Array.from({ length: 25 }, (_, n) => `${n}`);
    const [row] = await vision.show([user("all", ...paths)], never);
    expect(row).toMatchObject({ images: paths.slice(5).map(shown) });
    expect(row?.content).toContain("4.png is not shown: there are too many images");
    expect(asked).toHaveLength(20);
  });

  test("have at most 15 MB together", async () => {
    const { vision } = source(() => Buffer.alloc(3_750_000));
    const [row] = await vision.show([user("all", "1", "2", "3", "4", "5")], never);
    expect(row?.role === "user" && row.images?.length).toBe(4);
    expect(row?.content).toContain("1.png is not shown");
  });

  test("are no longer read once the turn is over", async () => {
    const end = new AbortController();
    const { vision, asked } = source((path) => {
      end.abort(new Error("stopped"));
      return Buffer.from(path);
    });
    await expect(vision.show([user("a", "1", "2", "3")], end.signal)).rejects.toThrow("stopped");
    expect(asked).toHaveLength(1);
  });
});
