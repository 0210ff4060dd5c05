/**
 * Reads and compares what a client presents; pure. It knows no identity. Invariant: comparing takes the same time
 * whatever was presented, so nobody learns a secret piece by piece.
 */
import { createHash, timingSafeEqual } from "node:crypto";

/** The token of an `Authorization: Bearer` header; null for any other header and for none. */
export function bearerOf(authorization: string | undefined): string | null {
  return /^Bearer\s+(\S+)$/i.exec(authorization ?? "")?.[1] ?? null;
}

/** Digests have one length, so the comparison tells neither content nor length. */
export function isSameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
