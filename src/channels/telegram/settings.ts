/**
 * What the channel is told, and what follows from it alone: its name, its account, whether its token can be one. It asks
 * nobody. Invariant: the account never holds the secret part of a token.
 */

/** The channel's name everywhere. */
export const TELEGRAM = "telegram";

/** The channel's slice of the configuration, as far as coming in is concerned. */
export interface InboundSettings {
  /** Null when none is configured. */
  token: string | null;
  apiRoot: string;
  /** Whether answers are shown while they are made. */
  streaming: boolean;
  /** What an edit of an answered message does. */
  lateEdits: "ignore" | "answer";
  /** Null: updates are asked for. */
  webhook: { url: string; secret: string } | null;
}

const TOKEN = /^(\d{3,20}):[A-Za-z0-9_-]{30,64}$/;

/** Whether this can be a token at all; nothing else may reach the network. */
export function isTokenShaped(token: string | null): token is string {
  return token !== null && TOKEN.test(token);
}

/** `telegram:<bot id>`. Of a token that cannot be one nothing is repeated. */
export function accountOf(token: string | null): string {
  const [, botId = "unknown"] = TOKEN.exec(token ?? "") ?? [];
  return `${TELEGRAM}:${botId}`;
}
