/**
 * Images that a model or its provider refuses: how that is told from other failures, and the same conversation without them.
 * Pure; the runner asks again. Invariant: a row without its images says that they were there. [RUN-29]
 */
import { type ChatMessage, ProviderError } from "./providers/provider.js";

const NOT_SHOWN = "(The images could not be shown to you: the model or its provider refused them.)";
/** Words of servers that call it a failure of their own. */
const ABOUT_IMAGES = /image|vision|multi-?modal|modalit/i;

export function hasImages(messages: readonly ChatMessage[]): boolean {
  return messages.some((row) => row.role === "user" && (row.images ?? []).length > 0);
}

/** Whether the same request may be taken without its images. */
export function mayBeAboutImages(error: unknown): error is ProviderError {
  if (!(error instanceof ProviderError)) return false;
  const { code, options } = error;
  // Some say that they know no such model, where they have none that sees.
  if (code === "PROVIDER_INVALID" || code === "PROVIDER_MODEL_UNKNOWN") return true;
  return code === "PROVIDER_SERVER" && ABOUT_IMAGES.test(options.detail ?? "");
}

export function withoutImages(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((row) => {
    if (row.role !== "user" || (row.images ?? []).length === 0) return row;
    return { role: "user", content: `${row.content}\n${NOT_SHOWN}` };
  });
}
