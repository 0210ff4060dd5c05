/**
 * The account that a bot token belongs to, read from the token itself. It asks nobody. Invariant: a token of the wrong shape
 * is refused before it is used, and no message holds a piece of one.
 */
import { NanogateError } from "../../errors.js";
import { DISCORD } from "./name.js";
import { isSnowflake } from "./wire.js";

const SHAPE = /^[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{20,}$/;

/** The id of the bot: the first segment of its token. Null for what is no token. */
export function botIdOf(token: string): string | null {
  if (!SHAPE.test(token)) return null;
  const [first = ""] = token.split(".");
  const id = Buffer.from(first, "base64url").toString("latin1");
  return isSnowflake(id) ? id : null;
}

/** The account's name. A wrong token has one too, so that its channel can say what is wrong. */
export function accountOf(token: string): string {
  return `${DISCORD}:${botIdOf(token) ?? "unknown"}`;
}

/** Throws `DISCORD_TOKEN_INVALID` for a token of the wrong shape. */
export function checkToken(token: string): void {
  if (botIdOf(token) !== null) return;
  throw new NanogateError("DISCORD_TOKEN_INVALID", "The Discord token has not the shape of a bot token.");
}
