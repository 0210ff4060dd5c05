import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { ManualClock } from "../../fakes/manual-clock.js";
import { until } from "../../support/bus-fixture.js";
import { Inbound } from "./inbound-harness.js";
import { GROUP, ME, PRIVATE, said, update } from "./said.js";

let open: Inbound[] = [];
afterEach(async () => {
  await Promise.all(open.map((inbound) => inbound.close()));
  open = [];
});

async function started(more: Parameters<typeof Inbound.create>[1] = {}): Promise<Inbound> {
  const inbound = await Inbound.create({}, more);
  open.push(inbound);
  await inbound.start();
  return inbound;
}

const message = (more: Record<string, unknown>, id: number, chat: object = PRIVATE) =>
  update({ message: said({ message_id: id, ...more }, chat) }, id);
/** The first bytes of a PNG. */
const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489", "hex");

async function taken(inbound: Inbound, ...updates: ReturnType<typeof update>[]) {
  inbound.api.push(...updates);
  return until(() => inbound.accepted[0]);
}

describe("a file", () => {
  it("is kept with its bytes, its real type and a safe name", async () => {
    const inbound = await started();
    inbound.api.files.set("files/p", PNG);
    const { media, content } = await taken(
      inbound,
      message({ document: { file_id: "p", file_name: "../../etc/x.png" }, caption: "see" }, 1),
    );
    expect(content).toBe("see");
    expect(media).toHaveLength(1);
    const [ref] = media;
    if (ref === undefined) throw new Error("no file");
    expect(ref).toMatchObject({ mime: "image/png", bytes: PNG.length });
    expect(ref.name).not.toContain("/");
    expect(await readFile(await inbound.context.media.pathOf(ref))).toEqual(PNG);
  });

  it("that was spoken says so", async () => {
    const inbound = await started();
    inbound.api.files.set("files/v", randomBytes(50));
    const { media } = await taken(inbound, message({ voice: { file_id: "v" } }, 1));
    expect(media).toMatchObject([{ isVoice: true }]);
  });

  it("announced as too big is not fetched, and its sender's words still count", async () => {
    const inbound = await started({ maxBytes: 5_000_000 });
    const video = { file_id: "big", file_name: "film.mp4", file_size: 50_000_000 };
    const { media, content } = await taken(inbound, message({ video, caption: "watch this" }, 1));
    expect(media).toEqual([]);
    expect(content).toBe('watch this\n[video "film.mp4": not received: 50 MB are more than the 5 MB I can take]');
    expect(inbound.api.of("getFile")).toEqual([]);
  });

  it("that is bigger than it said is cut off", async () => {
    const inbound = await started({ maxBytes: 1_000 });
    inbound.api.files.set("files/liar", randomBytes(200_000));
    const { media, content } = await taken(inbound, message({ document: { file_id: "liar", file_size: 10 } }, 1));
    expect(media).toEqual([]);
    expect(content).toMatch(/^\[document: not received: .+\]$/);
  });

  it.each([
    ["is empty", "files/f", Buffer.alloc(0)],
    ["is gone", "files/other", Buffer.from("x")],
  ])("that %s is a marker", async (_, name, bytes) => {
    const inbound = await started();
    inbound.api.files.set(name, bytes);
    const { media, content } = await taken(inbound, message({ document: { file_id: "f" } }, 1));
    expect(media).toEqual([]);
    expect(content).toMatch(/^\[document: not received: .+\]$/);
  });

  it("whose connection breaks is tried once more", async () => {
    const inbound = await started();
    inbound.api.will("getFile", "reset");
    inbound.api.files.set("files/f", Buffer.from("words"));
    const { media } = await taken(inbound, message({ document: { file_id: "f" } }, 1));
    expect(media).toHaveLength(1);
    expect(inbound.api.of("getFile")).toHaveLength(2);
  });

  it("that never arrives is given up, and the message still counts", async () => {
    const clock = new ManualClock();
    const inbound = await started({ clock });
    inbound.api.files.set("files/f", "hold");
    inbound.api.push(message({ document: { file_id: "f" }, caption: "words" }, 1));
    await until(() => inbound.api.of("getFile").length === 1);
    await until(async () => {
      await clock.advance(5_000);
      return inbound.accepted.length === 1;
    });
    expect(inbound.texts()).toEqual(["words\n[document: not received: it took too long]"]);
  });

  it("of a quoted message comes with the quote", async () => {
    const inbound = await started();
    inbound.api.files.set("files/q", PNG);
    const answered = said({ message_id: 1, photo: [{ file_id: "q" }], caption: "the garden" });
    const { replyTo, media } = await taken(inbound, message({ text: "what is this?", reply_to_message: answered }, 2));
    expect(media).toEqual([]);
    expect(replyTo).toMatchObject({ text: "@ann: the garden\n[photo]", media: [{ mime: "image/png" }] });
  });
});

describe("an album", () => {
  const part = (id: number, more: Record<string, unknown> = {}, chat: object = PRIVATE) =>
    message({ photo: [{ file_id: `a${id}` }], media_group_id: "g", ...more }, id, chat);

  it("comes in whole, in order and in quick succession, however slow one of its files is", async () => {
    const inbound = await started();
    let release = () => {};
    let isReleased = false;
    const slow = new Promise<Buffer>((resolve) => {
      release = () => {
        isReleased = true;
        resolve(PNG);
      };
    });
    for (const id of [1, 2]) inbound.api.files.set(`files/a${id}`, PNG);
    inbound.api.files.set("files/a3", slow);
    const stored: boolean[] = [];
    inbound.storing = async () => void stored.push(isReleased);
    inbound.api.push(part(1));
    await until(() => inbound.api.of("getUpdates").at(-1)?.params.offset === 1);
    inbound.api.push(part(2, { caption: "all of them" }), part(3));
    await until(() => inbound.api.of("getFile").length === 3);
    const asked = inbound.api.of("getUpdates").length;
    // The others are there long since.
    await until(() => inbound.api.of("getUpdates").length > asked + 2);
    release();
    await until(() => inbound.accepted.length === 3);
    expect(stored).toEqual([true, true, true]);
    expect(inbound.accepted.map(({ id, gatherMs, media }) => [id, gatherMs, media.length])).toEqual([
      ["1", 1500, 1],
      ["2", 1500, 1],
      ["3", 1500, 1],
    ]);
  });

  it("is meant for the bot when any part says so", async () => {
    const inbound = await started();
    inbound.admit = async ({ scene }) =>
      scene.kind === "group" && scene.isMentioned
        ? { kind: "admitted", isOwner: false }
        : { kind: "refused", why: "quiet" };
    for (const id of [1, 2]) inbound.api.files.set(`files/a${id}`, PNG);
    inbound.api.push(part(1, {}, GROUP));
    await until(() => inbound.api.of("getUpdates").length > 2);
    inbound.api.push(part(2, { caption: `@${ME.username} look` }, GROUP));
    await until(() => inbound.accepted.length === 2);
    expect(inbound.texts()).toEqual(["", `@${ME.username} look`]);
  });

  it("that nobody meant for the bot is not even fetched", async () => {
    const inbound = await started();
    inbound.admit = async () => ({ kind: "refused", why: "quiet" });
    inbound.api.push(part(1, {}, GROUP), part(2, {}, GROUP));
    await until(() => inbound.api.waiting().length === 0);
    expect(inbound.api.of("getFile")).toEqual([]);
  });
});
