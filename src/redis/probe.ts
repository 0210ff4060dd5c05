/**
 * Asks a Redis server once whether it can be used, over a connection of its own that is closed again: for commands, which
 * say what is wrong where the gateway waits. Invariant: it judges by the same facts as the gateway's connection, and a
 * failure says why in words without credentials.
 */
import { Redis, type RedisOptions } from "ioredis";
import { NanogateError } from "../errors.js";
import { redactText } from "../logger.js";
import type { RedisAddress } from "./client.js";
import { isSupported, readFacts, type ServerFacts } from "./server-facts.js";

type Options = Omit<RedisOptions, "replyMapping">;

/** What the server says of itself. Throws `REDIS_UNREACHABLE` (within about `limitMs`) or `REDIS_TOO_OLD`. */
export async function probeRedis(address: RedisAddress, name: string, limitMs: number): Promise<ServerFacts> {
  const options: Options = {
    lazyConnect: true,
    connectionName: name,
    connectTimeout: limitMs,
    commandTimeout: limitMs,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    disableClientInfo: true,
  };
  const client =
    "url" in address ? new Redis(address.url, options) : new Redis({ ...options, path: address.socketPath });
  // The promise of connect() only says that it was closed; the reason comes as an event.
  let reason: unknown;
  client.on("error", (error: unknown) => {
    reason = error;
  });
  try {
    await client.connect();
    const facts = await readFacts(client);
    if (isSupported(facts)) return facts;
    throw new NanogateError("REDIS_TOO_OLD", `The Redis server is version ${facts.version}.`);
  } catch (error) {
    if (error instanceof NanogateError) throw error;
    throw unreachable(address, reason ?? error);
  } finally {
    if (client.status !== "end") client.disconnect();
  }
}

function unreachable(address: RedisAddress, cause: unknown): NanogateError {
  const place = "url" in address ? redactText(address.url) : address.socketPath;
  const why = cause instanceof Error && cause.message !== "" ? redactText(cause.message) : "it does not answer";
  return new NanogateError("REDIS_UNREACHABLE", `Redis at ${place} cannot be used: ${why}.`, { cause });
}
