/**
 * The fixed sentences of the runner: what it tells the model when a turn needs a push, and what it says itself when no
 * model answer is left. Instructions are shown to the model once and never stored. Pure.
 */

const TAIL_CHARS = 64;

/** After an answer in which every call lacked a name. */
export const NAMELESS_CALLS =
  "Your last answer asked for a tool without naming it, so nothing was run. Name the tool, or answer in words.";

/** The last try after blank answers. */
export const ANSWER_NOW = "Answer the user now, in words and without tools, from what you know so far.";

/** The closing request at the iteration limit. */
export const CLOSING =
  "No more tools can be used in this turn. Tell the user in words what is done, what was found, and what remains.";

/** The answer when the model gave none. */
export const EMPTY_FINAL = "The model gave no answer, although it was asked again. Please send your message once more.";

/** The answer when the provider's filter left nothing of the model's. */
export const FILTERED = "The provider's content filter withheld the answer. Please put your request differently.";

/** A tool result without a word. */
export const NO_OUTPUT = "(completed with no output)";

/** The answer when the iteration limit was hit and the closing request gave nothing. */
export function limitReached(maxIterations: number): string {
  return `This turn reached its limit of ${maxIterations} model calls (agent.maxIterations) before it was finished. What was done so far is kept; write to go on.`;
}

/** Asks for the rest of an answer that was cut off; blank `soFar`: nothing of it could be seen. */
export function continuation(soFar: string): string {
  if (soFar.trim() === "") {
    return "Your answer was cut off before anything of it could be seen. Think less and answer briefly.";
  }
  const tail = soFar.slice(-TAIL_CHARS).replace(/^\p{Surrogate}/u, "");
  return `Your answer was cut off. Go on exactly where it stopped, and repeat nothing. It ended with: ${JSON.stringify(tail)}`;
}

/** Instead of a call that was made, unchanged, too often in a row. */
export function repeatedCall(name: string, times: number): string {
  return `${name} was called with the same arguments ${times} times in a row. It was not run again: use the results above, or try something else.`;
}

/** A result within the limit, with a visible mark where it was cut. `maxChars` in UTF-16 units. */
export function boundResult(text: string, maxChars: number): string {
  if (text.trim() === "") return NO_OUTPUT;
  if (text.length <= maxChars) return text;
  const mark = `\n[cut here: the result has ${text.length} characters, at most ${maxChars} are shown; ask for a smaller part]`;
  return text.slice(0, Math.max(0, maxChars - mark.length)).replace(/\p{Surrogate}$/u, "") + mark;
}
