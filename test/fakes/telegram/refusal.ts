/**
 * How the fake Telegram refuses: code, description, parameters, worded as the real Bot API words them. It decides nothing
 * itself. Invariant: whatever is refused has had no effect.
 */
import type { ResponseParameters } from "grammy/types";

export class Refusal extends Error {
  override readonly name = "Refusal";

  constructor(
    readonly code: number,
    readonly description: string,
    readonly parameters: ResponseParameters = {},
  ) {
    super(description);
  }

  /** As it goes over the wire. */
  get body(): Record<string, unknown> {
    const { code, description, parameters } = this;
    const hints = Object.keys(parameters).length === 0 ? {} : { parameters };
    return { ok: false, error_code: code, description, ...hints };
  }
}

export function badRequest(what: string, parameters?: ResponseParameters): Refusal {
  return new Refusal(400, `Bad Request: ${what}`, parameters);
}

export function forbidden(what: string): Refusal {
  return new Refusal(403, `Forbidden: ${what}`);
}

export function conflict(what: string): Refusal {
  return new Refusal(409, `Conflict: ${what}`);
}

/** `seconds` are whole, as Telegram's are. */
export function tooMany(seconds: number): Refusal {
  return new Refusal(429, `Too Many Requests: retry after ${seconds}`, { retry_after: seconds });
}
