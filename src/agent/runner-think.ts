/**
 * Takes inline reasoning (`<think>`, `<thinking>`, `<thought>`) out of a stream of text, however the deltas cut it.
 * It does not judge dedicated reasoning fields. Invariants: no reasoning reaches the text; the same words in code or in
 * prose stay; the pieces of text joined are the text. A block that is opened in the middle is held back until it is
 * known to be closed: only one at the very start may be left open. [RUN-40]
 */
import { CodeTracker } from "./runner-code.js";

/** What a piece of the stream turned out to be. */
export interface Sorted {
  text: string;
  reasoning: string;
}

const OPEN = /^<(think|thinking|thought)>/i;
const OPEN_TAGS = ["<think>", "<thinking>", "<thought>"];
const LONGEST_TAG = "<thinking>".length;
/** The beginning of a tag, cut off by the end of the stream, from this length on is not taken for text. */
const TELLING_PREFIX = 3;

function isTagBeginning(text: string): boolean {
  const lower = text.toLowerCase();
  return text.length < LONGEST_TAG && OPEN_TAGS.some((tag) => tag.length > text.length && tag.startsWith(lower));
}

/** One answer being sorted. Feed every delta to `push`, then call `end` once. */
export class ThinkFilter {
  /** Not yet decided. */
  #pending = "";
  /** The tag we are inside of, at the very start of the answer. */
  #inside: string | null = null;
  #hasText: boolean;
  #afterBlock = false;
  readonly #code = new CodeTracker();

  /** `isContinuation`: text of the same answer came before, so nothing here is at its start. */
  constructor(isContinuation = false) {
    this.#hasText = isContinuation;
  }

  push(delta: string): Sorted {
    this.#pending += delta;
    return this.#sort(false);
  }

  end(): Sorted {
    const sorted = this.#sort(true);
    if (this.#inside !== null)
      return { text: sorted.text, reasoning: sorted.reasoning + this.#take(this.#pending.length) };
    const isCutTag = !this.#hasText && this.#pending.length >= TELLING_PREFIX && isTagBeginning(this.#pending);
    const rest = this.#take(this.#pending.length);
    return isCutTag ? sorted : { text: sorted.text + this.#show(rest), reasoning: sorted.reasoning };
  }

  #take(length: number): string {
    const taken = this.#pending.slice(0, length);
    this.#pending = this.#pending.slice(length);
    return taken;
  }

  /** Text on its way out; spaces between a leading block and the answer belong to neither. */
  #show(text: string): string {
    this.#code.follow(text);
    const shown = this.#afterBlock && !this.#hasText ? text.trimStart() : text;
    if (shown.trim() !== "") this.#hasText = true;
    return shown;
  }

  #sort(isEnd: boolean): Sorted {
    const sorted: Sorted = { text: "", reasoning: "" };
    while (this.#pending !== "") {
      const isMoved = this.#inside === null ? this.#sortText(sorted, isEnd) : this.#sortReasoning(sorted, this.#inside);
      if (!isMoved) break;
    }
    return sorted;
  }

  #sortReasoning(sorted: Sorted, tag: string): boolean {
    const close = `</${tag}>`;
    const at = this.#pending.search(new RegExp(close, "i"));
    if (at >= 0) {
      sorted.reasoning += this.#take(at);
      this.#take(close.length);
      this.#inside = null;
      this.#afterBlock = true;
      return true;
    }
    const open = this.#pending.lastIndexOf("<");
    const isCut = open >= 0 && close.startsWith(this.#pending.slice(open).toLowerCase());
    sorted.reasoning += this.#take(isCut ? open : this.#pending.length);
    return false;
  }

  /** Moves one step on; false when more must come first. */
  #sortText(sorted: Sorted, isEnd: boolean): boolean {
    const at = this.#code.nextOutsideCode(this.#pending, "<");
    if (at > 0) {
      sorted.text += this.#show(this.#take(at));
      return true;
    }
    if (at < 0) {
      sorted.text += this.#show(this.#take(this.#pending.length));
      return false;
    }
    const tag = OPEN.exec(this.#pending)?.[1];
    if (tag === undefined) {
      if (isTagBeginning(this.#pending)) return false;
      sorted.text += this.#show(this.#take(1));
      return true;
    }
    return this.#sortBlock(sorted, tag.toLowerCase(), isEnd);
  }

  #sortBlock(sorted: Sorted, tag: string, isEnd: boolean): boolean {
    const openLength = tag.length + 2;
    if (!this.#hasText) {
      this.#take(openLength);
      this.#inside = tag;
      return true;
    }
    const close = `</${tag}>`;
    const at = this.#pending.search(new RegExp(close, "i"));
    if (at >= 0) {
      this.#take(openLength);
      sorted.reasoning += this.#take(at - openLength);
      this.#take(close.length);
      return true;
    }
    if (!isEnd) return false;
    // Never closed: somebody wrote about the tag.
    sorted.text += this.#show(this.#take(openLength));
    return true;
  }
}
