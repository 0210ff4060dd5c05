/**
 * Sizes of files in words for people. Pure; it rounds, so nothing may be compared by its result. Invariant: no unit is shown
 * that would make the number less than one.
 */

const UNITS = ["bytes", "kB", "MB", "GB"] as const;

/** Such as "20 MB" or "1.5 kB". */
export function sizeInWords(bytes: number): string {
  const power = bytes < 1000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${Number(value.toFixed(1))} ${UNITS[power] ?? "bytes"}`;
}
