/**
 * The one name somebody most likely meant. It only compares spellings. Invariant: it answers only when exactly one known
 * name is near; between two it answers nothing. [TOOL-1]
 */

const MAX_CHARS = 64;

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** Edits (insert, delete, replace, swap of neighbours, each one character) from one word to the other. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwap ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(replace, swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The only one of `known` that is near `name`, or null. */
export function nearest(name: string, known: readonly string[]): string | null {
  const wanted = plain(name).slice(0, MAX_CHARS);
  const exact = known.filter((candidate) => plain(candidate) === wanted);
  if (exact.length > 0) return exact.length === 1 ? (exact[0] ?? null) : null;
  const limit = wanted.length <= 4 ? 1 : 2;
  const near = known.filter((candidate) => distance(wanted, plain(candidate)) <= limit);
  return near.length === 1 ? (near[0] ?? null) : null;
}
