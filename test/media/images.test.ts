/** Images as models get them, with the real sharp and without any. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import type { MediaRef } from "../../src/bus/messages.js";
import { createLogger } from "../../src/logger.js";
import { createImageReader } from "../../src/media/images.js";
import { createSharpLoader, type Sharp } from "../../src/media/sharp.js";
import { incoming, mediaStage, PNG } from "./support.js";

const stage = mediaStage();
const logger = createLogger({ level: "silent", secrets: [] });

async function read(file: Buffer | MediaRef, { maxPixels = 100, scaler }: { maxPixels?: number; scaler?: null } = {}) {
  const store = stage.store();
  const ref = Buffer.isBuffer(file) ? await store.save(incoming(file)) : file;
  const loader: () => Promise<Sharp | null> = scaler === null ? async () => null : createSharpLoader(logger);
  return createImageReader({ files: store, maxPixels, sharp: loader, logger }).read(ref);
}

async function shown(...given: Parameters<typeof read>) {
  const result = await read(...given);
  if (result.kind === "refused") throw new Error(result.why);
  const { width, height, format, orientation, pages } = await sharp(result.bytes).metadata();
  return { mime: result.mime, width, height, format, orientation, pages, bytes: result.bytes };
}

const plain = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: "#336699" } });
/** Every pixel another, so that nothing compresses it. */
const noise = (width: number, height: number) =>
  sharp(randomBytes(width * height * 3), { raw: { width, height, channels: 3 } });

describe("an image", () => {
  test("within the limits is sent byte for byte", async () => {
    expect(await shown(PNG)).toMatchObject({ mime: "image/png", bytes: PNG });
    const photo = await plain(100, 60).jpeg().toBuffer();
    expect(await shown(photo)).toMatchObject({ mime: "image/jpeg", bytes: photo });
  });

  test.each(["jpeg", "png", "webp"] as const)("that is larger is scaled to its longer side: %s", async (format) => {
    const large = await plain(400, 200).toFormat(format).toBuffer();
    expect(await shown(large)).toMatchObject({ mime: `image/${format}`, format, width: 100, height: 50 });
  });

  test("that moves is shown as its first picture once it must be scaled", async () => {
    const frames = await Promise.all(
      [1, 2].map((n) =>
        plain(300, 300)
          .tint({ r: n * 90, g: 0, b: 0 })
          .png()
          .toBuffer(),
      ),
    );
    const gif = await sharp(frames, { join: { animated: true } })
      .gif()
      .toBuffer();
    expect(await shown(gif)).toMatchObject({ mime: "image/png", format: "png", width: 100, height: 100 });
    expect(await shown(gif, { maxPixels: 600 })).toMatchObject({ mime: "image/gif", bytes: gif });
  });

  test("that a camera held sideways is turned upright", async () => {
    const sideways = await plain(80, 40).jpeg().withMetadata({ orientation: 6 }).toBuffer();
    expect(await shown(sideways)).toMatchObject({ width: 40, height: 80, orientation: undefined });
  });

  test("of too many bytes is made a JPEG that fits, and says the same twice", async () => {
    const heavy = await noise(1500, 1500).png({ compressionLevel: 0 }).toBuffer();
    expect(heavy.length).toBeGreaterThan(5_000_000);
    const first = await shown(heavy, { maxPixels: 1568 });
    expect(first).toMatchObject({ mime: "image/jpeg", width: 1500 });
    expect(first.bytes.length).toBeLessThan(3_750_000);
    expect((await shown(heavy, { maxPixels: 1568 })).bytes).toEqual(first.bytes);
  });
});

describe("no image", () => {
  test("comes from a file that only begins like one, from another format, from one that is gone", async () => {
    const broken = Buffer.concat([PNG.subarray(0, 30), Buffer.alloc(50)]);
    expect(await read(broken)).toMatchObject({ kind: "refused", why: expect.stringContaining("cannot be read") });
    const tiff = await plain(10, 10).tiff().toBuffer();
    expect(await read(tiff)).toEqual({ kind: "refused", why: "models take no image/tiff" });
    const gone = { path: "2020-01/x", mime: "image/png", name: "x", bytes: 1 };
    expect(await read(gone)).toMatchObject({ kind: "refused" });
  });

  test("is made of a small file that would be huge", async () => {
    const bomb = await plain(12_000, 9_000).png({ palette: true }).toBuffer();
    expect(bomb.length).toBeLessThan(1_000_000);
    expect(await read(bomb)).toMatchObject({ kind: "refused" });
  });
});

describe("without sharp", () => {
  test("an image is sent as large as it came, up to a bound", async () => {
    const photo = await plain(400, 200).jpeg().toBuffer();
    expect(await shown(photo, { scaler: null })).toMatchObject({ mime: "image/jpeg", bytes: photo });
    const heavy = await noise(1500, 1500).png({ compressionLevel: 0 }).toBuffer();
    expect(await read(heavy, { scaler: null })).toEqual({
      kind: "refused",
      why: expect.stringMatching(/^it has 6\.\d MB, and nothing is installed/),
    });
  });
});

test("sharp is needed by no file of the build: only its name is known", async () => {
  const source = await readFile(new URL("../../src/media/sharp.ts", import.meta.url), "utf8");
  expect(source).not.toMatch(/from "sharp"|import\("sharp"\)/);
  expect(await createSharpLoader(logger)()).not.toBeNull();
});
