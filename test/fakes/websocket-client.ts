/** A real `ws` client for tests: keeps every frame, waits for the one that a test names. */
import { WebSocket } from "ws";

export type Frame = Record<string, unknown> & { event: string };

export class TestClient {
  readonly frames: Frame[] = [];
  closeCode: number | null = null;
  readonly socket: WebSocket;
  readonly #checks = new Set<() => void>();

  constructor(url: string, options: { origin?: string; headers?: Record<string, string>; autoPong?: boolean } = {}) {
    this.socket = new WebSocket(url, options);
    this.socket.on("message", (data: Buffer) => {
      this.frames.push(JSON.parse(data.toString()));
      this.#check();
    });
    this.socket.on("close", (code) => {
      this.closeCode = code;
      this.#check();
    });
    // A close tells the same.
    this.socket.on("error", () => this.#check());
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === "string" || Buffer.isBuffer(frame) ? frame : JSON.stringify(frame));
  }

  /** The first frame of that name that fits, from the start or from a place on. */
  async frame(event: string, fields: Record<string, unknown> = {}, from = 0): Promise<Frame> {
    const find = () =>
      this.frames
        .slice(from)
        .find(
          (frame) => frame.event === event && Object.entries(fields).every(([name, value]) => frame[name] === value),
        );
    await this.until(() => find() !== undefined, `frame ${event} ${JSON.stringify(fields)}`);
    const found = find();
    if (found === undefined) throw new Error("unreachable");
    return found;
  }

  /** Numbered frames of a chat. */
  numbered(chatId: unknown): Frame[] {
    return this.frames.filter(
      (frame) => frame.chat_id === chatId && typeof frame.seq === "number" && !("epoch" in frame),
    );
  }

  async closed(): Promise<number | null> {
    await this.until(() => this.closeCode !== null, "the close");
    return this.closeCode;
  }

  /** Checked after each frame and on closing. */
  until(condition: () => boolean, what: string, limitMs = 10_000): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = () => {
        if (!condition()) return;
        clearTimeout(limit);
        this.#checks.delete(check);
        resolve();
      };
      const limit = setTimeout(() => {
        this.#checks.delete(check);
        reject(new Error(`waited in vain for ${what}; got ${JSON.stringify(this.frames.slice(-5))} ${this.closeCode}`));
      }, limitMs);
      this.#checks.add(check);
      check();
    });
  }

  #check(): void {
    for (const check of this.#checks) check();
  }
}

/** Polls a condition that no frame announces. */
export async function eventually(condition: () => boolean, what: string): Promise<void> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`waited in vain for ${what}`);
}
