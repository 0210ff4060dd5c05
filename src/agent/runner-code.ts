/**
 * Knows whether a stream of Markdown stands inside code: a fenced block, or an inline span. It follows what is shown and
 * changes nothing. Invariant: it depends only on the text so far, not on how the deltas cut it. An inline span is taken
 * to end with its line at the latest, so a stray backtick cannot turn the rest of an answer into code.
 */

export class CodeTracker {
  /** The fence that would close the block we are in, such as three backticks. */
  #fence: string | null = null;
  /** Length of the run of backticks that opened the span we are in. */
  #span = 0;
  /** The present line as far as it has come. */
  #line = "";
  /** Backticks that may go on. */
  #run = 0;

  /** The text that was shown next. */
  follow(text: string): void {
    for (const char of text) this.#step(char);
  }

  /** Where `char` stands first outside code in the text that would come next; -1 when nowhere. */
  nextOutsideCode(text: string, char: string): number {
    const ahead = this.#copy();
    for (let at = 0; at < text.length; at += 1) {
      const next = text[at] ?? "";
      if (next === char && !ahead.#isInside()) return at;
      ahead.#step(next);
    }
    return -1;
  }

  #copy(): CodeTracker {
    const copy = new CodeTracker();
    copy.#fence = this.#fence;
    copy.#span = this.#span;
    copy.#line = this.#line;
    copy.#run = this.#run;
    return copy;
  }

  #isInside(): boolean {
    if (this.#fence !== null || this.#isFenceLine()) return true;
    // A run of backticks has just ended: it opens a span, or closes the one we are in.
    if (this.#run > 0) return this.#run !== this.#span;
    return this.#span > 0;
  }

  #isFenceLine(): boolean {
    return /^ {0,3}(`{3,}|~{3,})/.test(this.#line);
  }

  #step(char: string): void {
    if (char === "\n") {
      this.#endLine();
      return;
    }
    this.#line += char;
    if (char === "`") {
      this.#run += 1;
      return;
    }
    this.#endRun();
  }

  #endRun(): void {
    if (this.#run > 0 && this.#fence === null && !this.#isFenceLine()) {
      if (this.#span === 0) this.#span = this.#run;
      else if (this.#run === this.#span) this.#span = 0;
    }
    this.#run = 0;
  }

  #endLine(): void {
    const mark = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(this.#line);
    const fence = mark?.[1] ?? "";
    if (this.#fence === null) {
      // The words behind a fence of backticks hold none; else it is an inline span.
      if (fence !== "" && !(fence.startsWith("`") && (mark?.[2] ?? "").includes("`"))) this.#fence = fence;
    } else if (fence.startsWith(this.#fence) && (mark?.[2] ?? "").trim() === "") {
      this.#fence = null;
    }
    this.#span = 0;
    this.#line = "";
    this.#run = 0;
  }
}
