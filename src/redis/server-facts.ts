/**
 * What a server says of itself: which life it lives, how old it is, what it does when its memory is full. It decides
 * nothing. Invariant: one command, so that all of it belongs to one connection.
 */
import type { Redis } from "ioredis";

/** Facts about the server, read at each connect. */
export interface ServerFacts {
  /** Another one after each start of the server. */
  runId: string;
  version: string;
  /** What is done when memory is full; null where the server hides it. */
  policy: string | null;
}

const OLDEST_MAJOR = 7;

function fieldsOf(info: string): Map<string, string> {
  const lines = info.split(/\r?\n/).filter((line) => line.includes(":"));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]));
}

export async function readFacts(redis: Redis): Promise<ServerFacts> {
  const fields = fieldsOf(await redis.info("server", "memory"));
  const version = fields.get("valkey_version") ?? fields.get("redis_version") ?? "0";
  return { runId: fields.get("run_id") ?? "", version, policy: fields.get("maxmemory_policy") ?? null };
}

export function isSupported({ version }: ServerFacts): boolean {
  return Number.parseInt(version, 10) >= OLDEST_MAJOR;
}

export function mayEvict({ policy }: ServerFacts): boolean {
  return policy !== null && policy !== "noeviction";
}
