/** The chat page in a real browser, over a real gateway: what a person sees when things go well, and when they do not. */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { openBrowser } from "./support/browser.js";
import { Stage } from "./support/stage.js";

/** Longest wait for something to be seen. */
const PATIENCE_MS = 20_000;

let browser: Browser;
let stage: Stage;
const contexts: BrowserContext[] = [];
/** Errors of any page: its console, its scripts, its content policy. */
const troubles: string[] = [];

beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());
afterEach(async () => {
  await Promise.all(contexts.splice(0).map((context) => context.close()));
  await stage.close();
  troubles.length = 0;
});

/** Opens the page of a gateway as a browser that was never there. */
async function visit(port: number, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext(options);
  contexts.push(context);
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("console", (line) => {
    // A browser reports each refused connection by itself; the page tells it in words of its own.
    if (line.type() === "error" && !line.text().includes("WebSocket connection")) troubles.push(line.text());
  });
  await page.goto(`http://127.0.0.1:${port}/`);
  return page;
}

/** No key, and no Ollama that may happen to run on this machine. */
const DEMO = { agent: { model: "auto" }, providers: { ollama: { baseUrl: "http://127.0.0.1:9/v1" } } };

/** Keeps, in the page, what stood in an answer while it grew. */
const WATCH_ANSWER = `
  globalThis.seen = [];
  new MutationObserver(() => seen.push(document.querySelector(".answer[data-open=true]")?.textContent ?? ""))
    .observe(document.body, { subtree: true, childList: true, attributes: true });
`;
const OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth";

const connected = (page: Page) => page.locator("#state[data-state=online]").waitFor();
const texts = (page: Page, kind: string) => page.locator(`#entries > .${kind}`).allTextContents();

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message").fill(text);
  await page.keyboard.press("Enter");
}

/** Waits for a finished answer with this text. */
const answered = (page: Page, text: string) =>
  page.locator("#entries > .answer[data-open=false]", { hasText: text }).waitFor();

it("streams an answer under its strict content policy and keeps the conversation over a reload", async () => {
  stage = await Stage.open();
  const { ready } = await stage.gateway();
  const page = await visit(await ready);
  expect(await page.locator("#model").textContent()).toBe("peer/m");
  await connected(page);
  await page.evaluate(WATCH_ANSWER);
  const text = `<b>one</b> ${"two three ".repeat(30)}end`;
  await say(page, text);
  await answered(page, "end");
  expect(await texts(page, "answer")).toEqual([`re: ${text}`]);
  const seen = await page.evaluate<string[]>("seen");
  expect(seen.some((part) => part.startsWith("re: <b>"))).toBe(true);

  await page.reload();
  await connected(page);
  expect([await texts(page, "user"), await texts(page, "answer")]).toEqual([[text], [`re: ${text}`]]);
  await say(page, "again");
  await answered(page, "re: again");
  expect(troubles).toEqual([]);

  // The policy holds, and this test would have seen a breach of it.
  await page.evaluate("document.body.append(Object.assign(document.createElement('script'), { text: 'seen = []' }))");
  await expect.poll(() => troubles.join()).toContain("Content Security Policy");
});

it("shows tools at work, and stops a turn", async () => {
  stage = await Stage.open();
  const { ready } = await stage.gateway();
  const page = await visit(await ready);
  await connected(page);
  await say(page, 'call write_file {"path":"a.txt","content":"x"}');
  await answered(page, "used:");
  expect(await texts(page, "tool")).toEqual(["write_file: done"]);
  await say(page, 'call read_file {"path":"nowhere.txt"}');
  await page.locator(".tool[data-phase=error]").waitFor();
  await page.locator(".answer[data-open=false]").nth(1).waitFor();

  const open = stage.model.hold("for ever");
  const arrival = stage.model.arrival("for ever");
  expect(await page.locator("#stop").isVisible()).toBe(false);
  await say(page, "for ever");
  await arrival;
  await page.locator("#stop").click();
  await page.locator(".note", { hasText: "Stopped." }).waitFor();
  await page.locator("#stop").waitFor({ state: "hidden" });
  open();
  await say(page, "after it");
  await answered(page, "re: after it");
  expect(troubles).toEqual([]);
});

it("shows a lost connection and goes on without loss when the gateway was killed and is back", async () => {
  stage = await Stage.open();
  const first = await stage.gateway();
  const port = await first.ready;
  const page = await visit(port);
  await connected(page);
  await say(page, "before");
  await answered(page, "re: before");
  const open = stage.model.hold("during");
  const arrival = stage.model.arrival("during");
  await say(page, "during");
  await page.locator(".user[data-status=sent]", { hasText: "during" }).waitFor();
  await arrival;
  await first.kill();
  await page.locator("#state[data-state=offline]").waitFor();
  await say(page, "while away");
  expect(await page.locator(".user[data-status=sending]").allTextContents()).toEqual(["while away"]);

  await stage.gateway({ port });
  open();
  await connected(page);
  await answered(page, "re: during");
  await answered(page, "re: while away");
  await page.locator(".user[data-status=sent]").nth(2).waitFor();
  expect(await texts(page, "user")).toEqual(["before", "during", "while away"]);
  expect(await texts(page, "answer")).toEqual(["re: before", "re: during", "re: while away"]);
  expect(troubles).toEqual([]);
});

it("says that the demo model answers, and asks for the token where one is needed", async () => {
  const token = "a-token-of-this-test";
  stage = await Stage.open({ ...DEMO, gateway: { token } });
  const { ready } = await stage.gateway();
  const page = await visit(await ready);
  expect(await page.locator("#demo").isVisible()).toBe(true);
  expect(await page.locator("#model").textContent()).toBe("demo");
  await page.locator("#token").fill("wrong");
  await page.keyboard.press("Enter");
  await page.locator("#token-dialog[open]").waitFor();
  await page.locator("#token").fill(token);
  await page.keyboard.press("Enter");
  await connected(page);
  await say(page, "hello");
  await answered(page, "[demo model] You said: hello");
  await page.reload();
  await connected(page);
  expect(troubles).toEqual([]);
});

it("fits a narrow screen, and is light or dark as the reader wants", async () => {
  stage = await Stage.open(DEMO);
  const { ready } = await stage.gateway();
  const grounds: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await visit(await ready, { colorScheme, viewport: { width: 360, height: 640 }, hasTouch: true });
    await connected(page);
    await say(page, "aWordThatNoLineCanHold".repeat(12));
    await answered(page, "[demo model]");
    const overflow = await page.evaluate<number>(OVERFLOW);
    grounds.push(await page.evaluate<string>("getComputedStyle(document.body).backgroundColor"));
    expect(overflow).toBe(0);
    for (const id of ["state", "new-chat", "text", "send"]) {
      const box = await page.locator(`#${id}`).boundingBox();
      expect(box, id).not.toBeNull();
      expect((box?.x ?? -1) >= 0 && (box?.x ?? 0) + (box?.width ?? 0) <= 360, `${id} is within the screen`).toBe(true);
    }
  }
  expect(new Set(grounds).size).toBe(2);
  expect(troubles).toEqual([]);
});
