/**
 * Looks again and again for files that are kept no longer. It removes nothing itself. Invariant: rounds never overlap, a round
 * that fails is followed by the next, and nothing of it keeps a process alive.
 */
import type { Logger } from "../logger.js";
import type { MediaStore } from "./store.js";

const HOUR_MS = 3_600_000;

/** Looks at once, then an hour after each round. Returns how to end it; a round under way is waited for. */
export function keepSweeping(store: Pick<MediaStore, "sweep">, logger: Logger, everyMs = HOUR_MS): () => Promise<void> {
  let timer: NodeJS.Timeout | null = null;
  let isOver = false;
  const round = async (): Promise<void> => {
    try {
      await store.sweep();
    } catch (error) {
      logger.warn({ err: error }, "old files could not be removed; they are tried again");
    }
    if (isOver) return;
    timer = setTimeout(next, everyMs);
    timer.unref();
  };
  const next = (): void => {
    running = round();
  };
  let running = round();
  return async () => {
    isOver = true;
    if (timer !== null) clearTimeout(timer);
    await running;
  };
}
