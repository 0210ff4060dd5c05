import { GrammyError, HttpError } from "grammy";
import { describe, expect, it } from "vitest";
import { retryAfterMs, safeError, whatFailed } from "../../../src/channels/telegram/api-error.js";

const TOKEN = `4242:${"s".repeat(35)}`;
const URL_WITH_TOKEN = `https://api.telegram.org/bot${TOKEN}/sendMessage`;

function refused(description: string, parameters = {}): GrammyError {
  const answer = { ok: false as const, error_code: 429, description, parameters };
  return new GrammyError("Call failed!", answer, "sendMessage", { text: TOKEN });
}

/** Everything that a careless printer could find. */
function everything(error: unknown): string {
  const seen = new Set<unknown>();
  const walk = (value: unknown): string => {
    if (typeof value !== "object" || value === null) return String(value);
    if (seen.has(value)) return "";
    seen.add(value);
    return Object.getOwnPropertyNames(value)
      .map((name) => walk(Reflect.get(value, name)))
      .join(" ");
  };
  return walk(error);
}

describe("a failed call in words", () => {
  it.each([
    [
      "a network error",
      new HttpError("failed", Object.assign(new Error(`request to ${URL_WITH_TOKEN}`), { code: "ECONNRESET" })),
    ],
    ["a refusal that echoes", refused(`Bad Request: ${URL_WITH_TOKEN}`)],
    [
      "an error of the runtime",
      new TypeError(`Failed to parse URL from ${URL_WITH_TOKEN}`, { cause: new Error(TOKEN) }),
    ],
    ["a text", `${URL_WITH_TOKEN}`],
  ])("holds no token: %s", (_, error) => {
    expect(everything(safeError(error))).not.toContain(TOKEN);
    expect(whatFailed(error)).not.toContain(TOKEN);
  });

  it("says what happened", () => {
    const reset = Object.assign(new Error("x"), { code: "ECONNRESET" });
    expect(whatFailed(new HttpError("failed", reset))).toBe("the network failed: ECONNRESET");
    expect(whatFailed(refused("Too Many Requests"))).toBe("sendMessage: 429 Too Many Requests");
  });

  it("says how long the platform wants to be left alone", () => {
    expect(retryAfterMs(refused("x", { retry_after: 7 }))).toBe(7000);
    expect(retryAfterMs(refused("x"))).toBeNull();
  });
});
