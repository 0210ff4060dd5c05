/**
 * Nothing secret reaches the output of the log, wherever it hides: fields, messages, URLs, errors and their causes.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLogger, type Logger, redactText } from "../../src/logger.js";

const BOT = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw";
const GIVEN = "given-secret-0001";

/** What a log prints when `use` is done with it, as one text. */
function printed(use: (logger: Logger) => void, secrets: readonly string[] = [GIVEN]): string {
  const lines: string[] = [];
  use(createLogger({ level: "trace", secrets, destination: { write: (line) => lines.push(line) } }));
  expect(lines.length).toBeGreaterThan(0);
  return lines.join("");
}

/** What a platform's library throws: the token in the URL of a request, three causes deep. */
function deepError(): Error {
  const socket = Object.assign(new Error(`connect to https://api.telegram.org/bot${BOT}/getMe`), {
    code: "ECONNREFUSED",
  });
  const fetchFailed = new TypeError("fetch failed", { cause: socket });
  return new Error("Network request for 'getMe' failed!", {
    cause: new Error(`with ${GIVEN}`, { cause: fetchFailed }),
  });
}

describe("the log", () => {
  it("keeps bot tokens out of errors and all their causes, and still says what happened", () => {
    for (const field of ["err", "error"]) {
      const text = printed((logger) => logger.error({ [field]: deepError() }, "polling failed"));
      expect(text).not.toContain(BOT.slice(10));
      expect(text).not.toContain(GIVEN);
    }
    const text = printed((logger) => logger.error({ err: deepError() }, "polling failed"));
    for (const kept of ["polling failed", "fetch failed", "ECONNREFUSED", "api.telegram.org"])
      expect(text).toContain(kept);
    expect(JSON.parse(text).err.cause.cause.cause.code).toBe("ECONNREFUSED");
  });

  it.each([
    ["a password in a URL", "redis://user:hushhush@db.test:6379/0", "hushhush"],
    ["a token in a query", "ws://gateway.test/?client_id=alice&token=hushhush", "hushhush"],
    ["a key in a query", "https://models.test/v1?key=hushhush&alt=sse", "hushhush"],
    ["a bearer header", "authorization: Bearer hush.hush-hush", "hush.hush"],
    ["an API key", "Incorrect API key provided: sk-proj-hushhush1234", "hushhush"],
    ["a bot's URL", `https://api.telegram.org/bot${BOT}/sendMessage`, BOT],
    ["a given secret", `prefix ${GIVEN} suffix`, GIVEN],
  ])("keeps %s out of message, field, list, error and child binding", (_what, text, secret) => {
    const uses: Array<(logger: Logger) => void> = [
      (logger) => logger.info(text),
      (logger) => logger.info({ deep: { deeper: [text] } }, "field"),
      (logger) => logger.warn({ err: new Error(text) }, "error"),
      (logger) => logger.warn({ err: text }, "not an error"),
      (logger) => logger.child({ bound: text }).debug("child"),
      (logger) => logger.info("with %s", text),
    ];
    for (const use of uses) expect(printed(use)).not.toContain(secret);
  });

  it("ends with a chain of causes that has no end", () => {
    const loop = new Error("round and round");
    loop.cause = loop;
    expect(JSON.parse(printed((logger) => logger.error({ err: loop }, "loop"))).msg).toBe("loop");
  });

  it("hides a secret with quotes, backslashes and line ends in it", () => {
    const secret = 'quote" back\\slash \n line end';
    const line = printed((logger) => logger.info({ field: `<${secret}>` }, "said"), [secret]);
    expect(JSON.parse(line)).toMatchObject({ field: "<[redacted]>", msg: "said" });
  });

  it("stays one JSON object a line, whatever stands in its texts", () => {
    const piece = fc.constantFrom(
      "redis://",
      "u:p@h",
      "?token=",
      "&key=",
      "Bearer ",
      "sk-abcdefghij",
      '"',
      "\\",
      "@",
      "/",
      " ",
      "x",
    );
    const text = fc.array(fc.oneof(piece, fc.string({ maxLength: 3 }))).map((pieces) => pieces.join(""));
    fc.assert(
      fc.property(text, text, (first, second) => {
        const line = printed((logger) => logger.info({ first, second, last: "kept" }, "said"));
        const entry = JSON.parse(line);
        expect(entry).toMatchObject({ last: "kept", msg: "said" });
        expect(Object.keys(entry)).toEqual(expect.arrayContaining(["first", "second"]));
        expect(line.indexOf("\n")).toBe(line.length - 1);
      }),
    );
  });

  it("holds no given secret, whatever it is and wherever it stands", () => {
    // A number in a line is bare, so a secret of digits alone could be part of one; every other stands within quotes.
    const secret = fc.string({ minLength: 4, maxLength: 20 }).filter((hidden) => !/^[\d":,{}\s.-]+$/.test(hidden));
    fc.assert(
      fc.property(fc.string(), secret, (text, hidden) => {
        const line = printed((logger) => logger.info({ field: `${text}${hidden}${text}` }, "said"), [hidden]);
        const values: unknown[] = Object.values(JSON.parse(line));
        expect(values.filter((value) => typeof value === "string" && value.includes(hidden))).toEqual([]);
      }),
    );
  });
});

describe("redactText", () => {
  it("leaves ordinary words alone", () => {
    const text = "turn t1 of session cli:direct: a token is needed; see https://models.test/v1/models?limit=3";
    expect(redactText(text, ["", "is"])).toBe(text);
  });
});
