/**
 * Tables as aligned text for a font of one width. It knows no markdown. Invariant: no cell is cut, and padding is bounded
 * however long a cell is.
 */

export type Alignment = "left" | "right" | "center" | null;

/** Columns wider than this are not filled up. */
const WIDEST_PADDING = 40;

const WIDE =
  /^(?:\p{Emoji_Presentation}|\p{Extended_Pictographic}\uFE0F|[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}])/u;

/** The columns that a text takes; wide characters take two. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text)) {
    width += WIDE.test(segment) ? 2 : /^[\p{Mark}\p{Cf}]/u.test(segment) ? 0 : 1;
  }
  return width;
}

/** Rows under a head, columns side by side. */
export function alignTable(rows: readonly (readonly string[])[], alignments: readonly Alignment[]): string {
  const cells = rows.map((row) => row.map((cell) => cell.replace(/\s+/g, " ").trim()));
  const widths: number[] = [];
  for (const row of cells) {
    for (const [at, cell] of row.entries())
      widths[at] = Math.max(widths[at] ?? 0, Math.min(widthOf(cell), WIDEST_PADDING));
  }
  const lines = cells.map((row) =>
    row
      .map((cell, at) => pad(cell, widths[at] ?? 0, alignments[at]))
      .join(" | ")
      .trimEnd(),
  );
  const rule = widths.map((width) => "-".repeat(Math.max(1, width))).join("-+-");
  return [...lines.slice(0, 1), rule, ...lines.slice(1)].join("\n");
}

function pad(cell: string, width: number, alignment: Alignment | undefined): string {
  const missing = Math.max(0, width - widthOf(cell));
  const left = alignment === "right" ? missing : alignment === "center" ? Math.floor(missing / 2) : 0;
  return `${" ".repeat(left)}${cell}${" ".repeat(missing - left)}`;
}
