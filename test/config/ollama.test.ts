/** `OLLAMA_HOST` in every form that Ollama's own programs take. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { ollamaUrl } from "../../src/config/ollama.js";

test.each([
  ["", "http://127.0.0.1:11434"],
  [" ", "http://127.0.0.1:11434"],
  ["127.0.0.1", "http://127.0.0.1:11434"],
  ["0.0.0.0", "http://127.0.0.1:11434"],
  ["0.0.0.0:9000", "http://127.0.0.1:9000"],
  ["[::]:9000", "http://127.0.0.1:9000"],
  ["[::1]", "http://[::1]:11434"],
  [":9000", "http://127.0.0.1:9000"],
  ["box", "http://box:11434"],
  ["box:80", "http://box"],
  ["box.lan:9000/", "http://box.lan:9000"],
  ["http://box", "http://box"],
  ["https://models.test/ollama", "https://models.test"],
  ["HTTP://box:9000", "http://box:9000"],
  ['"box:9000"', "http://box:9000"],
  ["ftp://box", null],
  ["http://", "http://127.0.0.1"],
  ["user:pass@box", null],
  ["two words", null],
])("%j is %j", (written, expected) => {
  expect(ollamaUrl(written)).toBe(expected);
});

test("whatever is written: nothing, or an http URL without path and credentials", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.webUrl(), fc.stringMatching(/^[a-z:/@.[\]0-9]{0,20}$/)), (written) => {
      const url = ollamaUrl(written);
      if (url !== null) expect(url).toMatch(/^https?:\/\/[^/@\s]+$/);
    }),
    { numRuns: 1000 },
  );
});
