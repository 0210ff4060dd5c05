/**
 * Finds in a configuration what must never be printed: values under keys that look secret, and passwords in URLs.
 * It redacts nothing itself. Invariant: a secret is listed in every form in which it may be printed.
 */
import { eachText } from "./tree.js";

const SECRET_KEY = /(?:key|token|secret|password)$/i;

/** Whether a value under this key is a secret. */
export function isSecretKey(key: string): boolean {
  return SECRET_KEY.test(key);
}

/** Every secret of a tree of settings, each once. */
export function secretsIn(tree: unknown): string[] {
  const secrets = new Set<string>();
  eachText(tree, (text, key) => {
    if (isSecretKey(key)) secrets.add(text);
    for (const password of passwordsIn(text)) secrets.add(password);
  });
  return [...secrets];
}

function passwordsIn(text: string): string[] {
  if (!URL.canParse(text)) return [];
  const { password } = new URL(text);
  if (password === "") return [];
  try {
    return [password, decodeURIComponent(password)];
  } catch (error) {
    // A stray per cent sign: there is no decoded form, so the written one is all that can be printed.
    if (error instanceof URIError) return [password];
    throw error;
  }
}
