/** Settings of bots: on when their token is there, wrong ones named, a token never in a message. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isBotEnabled } from "../../src/channels/policy.js";
import { fromEnvironment } from "../../src/config/fields.js";
import { loadConfig } from "../../src/config/load.js";

let home: string;
beforeEach(async () => {
  home = await mkdtemp(path.join(tmpdir(), "ng-bots-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

async function load(written: object, env: Record<string, string> = {}) {
  const file = path.join(home, "config.json");
  await writeFile(file, JSON.stringify(written));
  return (await loadConfig({ file, env: { NANOGATE_HOME: home, ...env }, cwd: home })).config;
}

const enabled = async (written: object, env: Record<string, string> = {}) => {
  const { telegram, discord } = (await load({ channels: written }, env)).channels;
  return [isBotEnabled(telegram), isBotEnabled(discord)];
};

test("a bot is connected when its token is there, or as it is written", async () => {
  expect(await enabled({})).toEqual([false, false]);
  expect(await enabled({}, { TELEGRAM_BOT_TOKEN: "1:a" })).toEqual([true, false]);
  expect(await enabled({ telegram: { enabled: false } }, { TELEGRAM_BOT_TOKEN: "1:a" })).toEqual([false, false]);
  expect(await enabled({ discord: { token: fromEnvironment("MINE") } }, { MINE: "x" })).toEqual([false, true]);
});

test("a token of a bot that is off need not be there; one that is on must", async () => {
  expect(await enabled({ telegram: { enabled: false, token: fromEnvironment("NOT_SET") } })).toEqual([false, false]);
  await expect(load({ channels: { telegram: { enabled: true } } })).rejects.toThrow(/channels\.telegram\.token/);
  await expect(load({ channels: { discord: { token: fromEnvironment("NOT_SET") } } })).rejects.toThrow(
    /channels\.discord\.token/,
  );
});

test("a wrong setting is named with what is allowed, and the token with it is not", async () => {
  const wrong = { token: "123:secret-part", groupPolicy: "sometimes", webhook: { url: "http://x", secret: "a b" } };
  const failure = await load({ channels: { telegram: wrong } }).then(
    () => "no error",
    (error: unknown) => String(error),
  );
  for (const part of ["groupPolicy", '"mention" or "reply"', "webhook.url", "https://", "webhook.secret"])
    expect(failure).toContain(part);
  expect(failure).not.toContain("secret-part");
});

test("spoken messages need a model of a provider that can listen", async () => {
  await expect(load({ transcription: { model: "nobody/whisper" } })).rejects.toThrow(/transcription\.model/);
  await expect(load({ transcription: { model: "anthropic/whisper" } })).rejects.toThrow(/kind openai/);
  expect((await load({ transcription: { model: "openai/whisper-1" } })).transcription.model).toBe("openai/whisper-1");
});
