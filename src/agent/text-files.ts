/**
 * Text files that are asked for again and again: looked at each time, read when they changed. It decides nothing about what
 * is in them. Invariant: what it gives is what the file held at a moment within the call.
 */
import { readFile, stat } from "node:fs/promises";

/** Longer than the tick of any disk's clock that we know. */
const SETTLED_MS = 3000;

interface Known {
  /** Inode, size, and the times of the last change of content and of anything else. */
  mark: string;
  text: string;
}

export class TextFiles {
  readonly #known = new Map<string, Known>();

  /** The trimmed text; null when there is no such file. Throws what else keeps it from being read. */
  async read(file: string): Promise<string | null> {
    try {
      const { ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
      const mark = `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
      const known = this.#known.get(file);
      if (known?.mark === mark) return known.text;
      const text = (await readFile(file, "utf8")).trim();
      // Changed a moment ago, it may change again within one tick of the disk's clock: not remembered yet.
      if (Date.now() - Number(mtimeNs / 1_000_000n) > SETTLED_MS) this.#known.set(file, { mark, text });
      return text;
    } catch (error) {
      this.#known.delete(file);
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
      throw error;
    }
  }
}
