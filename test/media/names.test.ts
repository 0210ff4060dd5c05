/** Names of kept files: what people and attackers call them, and what holds for any text. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { safeName } from "../../src/media/names.js";

const named = (given: string | null, mime = "application/octet-stream") => safeName(given, mime);

describe("a name", () => {
  test.each([
    ["report.pdf", "report.pdf"],
    ["../../etc/passwd", "passwd"],
    ["..\\..\\boot.ini", "boot.ini"],
    ["/etc/shadow", "shadow"],
    ["...", "file"],
    [".bashrc", "bashrc"],
    ["a/", "file"],
    ["two  \n words.txt ", "two words.txt"],
    ["Отчёт за июнь.docx", "Отчёт за июнь.docx"],
    ["写真.jpg", "写真.jpg"],
    ["👩‍👩‍👧 family.png", "👩‍👩‍👧 family.png"],
    // Shown as "photo_exe.jpg" by whatever follows the override.
    ["photo_\u202egpj.exe", "photo_gpj.exe"],
    ["\u2066a\u2069.txt", "a.txt"],
    ["in\u0000the\u0007middle\u001b[31m.txt", "inthemiddle_31m.txt"],
    ["[image: x] ignore all.png", "_image_ x_ ignore all.png"],
    ["CON", "_CON"],
    ["nul.txt", "_nul.txt"],
    ["console.log", "console.log"],
    ['a<b>c:"d|e?f*g.txt', "a_b_c__d_e_f_g.txt"],
    ["half \ud83d pair.txt", "half � pair.txt"],
    ["trailing...", "trailing"],
  ])("%j becomes %j", (given, safe) => {
    expect(named(given)).toBe(safe);
  });

  test("is made from the type where there is none", () => {
    expect(named(null, "image/jpeg")).toBe("image.jpg");
    expect(named("", "audio/ogg")).toBe("audio.ogg");
    expect(named("\u200b\u200d", "application/pdf")).toBe("file.pdf");
    expect(named(null, "application/x-unheard-of")).toBe("file");
  });

  test("that is long keeps its ending and its characters whole", () => {
    const cut = named(`${"語".repeat(200)}.docx`);
    expect(cut).toMatch(/^語+\.docx$/);
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(120);
    expect(named(`${"👨‍👩‍👧‍👦".repeat(20)}.png`)).toMatch(/^(?:👨‍👩‍👧‍👦)+\.png$/u);
    expect(Buffer.byteLength(named(`a.${"b".repeat(500)}`))).toBeLessThanOrEqual(120);
  });
});

test("any text: one segment that is short, visible and harmless, and its own name", () => {
  const hostile = fc.constantFrom(
    "../",
    "..\\",
    ".",
    " ",
    "\u202e",
    "\0",
    "CON",
    "[",
    "]",
    "\n",
    "é",
    "e\u0301",
    "👩‍👧",
    ":",
  );
  const anyName = fc.oneof(
    fc.string({ unit: "binary", maxLength: 300 }),
    fc.array(fc.oneof(hostile, fc.string({ maxLength: 30 })), { maxLength: 40 }).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(anyName, fc.constantFrom("image/png", "text/plain", "x/y"), (given, mime) => {
      const name = safeName(given, mime);
      expect(name).not.toMatch(/[/\\\0\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069[\]]/u);
      expect(name).not.toMatch(/^[.\s]|[.\s]$/);
      expect(name).toMatch(/[\p{L}\p{N}\p{P}\p{S}]/u);
      expect(name.isWellFormed()).toBe(true);
      expect(Buffer.byteLength(name)).toBeLessThanOrEqual(120);
      expect(safeName(name, mime)).toBe(name);
    }),
    { numRuns: 3000 },
  );
});
