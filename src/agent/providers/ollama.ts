/**
 * Looks for an Ollama server, for `auto`. It asks once, with a short limit, and chooses no provider. Invariant: whatever
 * answers or does not, the result is a model's name or null, never an error.
 */

/** Nobody's start waits longer than this. */
const LIMIT_MS = 300;

/** An Ollama to be asked: `address` is any URL of the server, its path is ignored. */
export interface OllamaDeps {
  address: string;
  /** Told why there is none, for the log. */
  onAbsent(reason: unknown): void;
}

function namesIn(listed: unknown): string[] {
  const models = typeof listed === "object" && listed !== null && "models" in listed ? listed.models : [];
  return (Array.isArray(models) ? models : []).flatMap((model: unknown) =>
    typeof model === "object" && model !== null && "name" in model && typeof model.name === "string" ? model.name : [],
  );
}

/** The first model that the server has and that is not made for embeddings only; null when there is none. */
export async function findOllamaModel({ address, onAbsent }: OllamaDeps): Promise<string | null> {
  try {
    const response = await fetch(new URL("/api/tags", address), { signal: AbortSignal.timeout(LIMIT_MS) });
    const listed: unknown = await response.json();
    return namesIn(listed).find((name) => /^\S+$/.test(name) && !/embed/i.test(name)) ?? null;
  } catch (error) {
    onAbsent(error);
    return null;
  }
}
