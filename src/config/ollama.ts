/**
 * Reads `OLLAMA_HOST` as Ollama's own programs do: a host, a port, both, or a URL. It asks nobody. Invariant: what it
 * returns is an http or https URL without credentials, path or query.
 */

const STANDARD_PORT = "11434";
/** A server told to listen everywhere is reached on this machine. */
const EVERYWHERE = new Set(["0.0.0.0", "[::]"]);

/** The server's URL, the standard one for an empty text; null for a text that is not understood. */
export function ollamaUrl(written: string): string | null {
  const text = written.trim().replace(/^["']|["']$/g, "");
  const [, scheme, rest = ""] = /^(?:([a-z]+):\/\/)?(.*)$/i.exec(text) ?? [];
  const address = `${scheme ?? "http"}://${rest.startsWith(":") || rest === "" ? "127.0.0.1" : ""}${rest}`;
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") return null;
  // A URL's own standard port holds only where a scheme was written.
  const hasPort = url.port !== "" || /:\d+(?:\/|$)/.test(rest) || scheme !== undefined;
  if (!hasPort) url.port = STANDARD_PORT;
  if (EVERYWHERE.has(url.hostname)) url.hostname = "127.0.0.1";
  return url.origin;
}
