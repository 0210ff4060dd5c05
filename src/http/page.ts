/**
 * Serves the chat page: five files that need no build, no other host and no token. What the page shows comes over its
 * own connection. Invariant: a strict content policy goes with every file, so that nothing but these files runs.
 */
import { readFile } from "node:fs/promises";
import type { FastifyInstance } from "fastify";

/** What the page tells about the gateway. */
export interface PageInfo {
  version: string;
  /** The model that answers, as `provider/model` or `demo`; never `auto`. */
  model: string;
  /** True when answers come from the built-in demo model. */
  isDemo: boolean;
}

const FILES = [
  { route: "/", file: "index.html", type: "text/html; charset=utf-8" },
  { route: "/page/style.css", file: "style.css", type: "text/css; charset=utf-8" },
  { route: "/page/entries.css", file: "entries.css", type: "text/css; charset=utf-8" },
  { route: "/page/app.js", file: "app.js", type: "text/javascript; charset=utf-8" },
  { route: "/page/chat.js", file: "chat.js", type: "text/javascript; charset=utf-8" },
] as const;

const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-cache",
};

/** Reads the files once and adds their routes. */
export async function addPageRoutes(app: FastifyInstance, info: PageInfo): Promise<void> {
  for (const { route, file, type } of FILES) {
    const body = await readFile(new URL(`./page/${file}`, import.meta.url), "utf8");
    app.get(route, async (_request, reply) => reply.headers({ ...HEADERS, "content-type": type }).send(body));
  }
  app.get("/page/info.json", async (_request, reply) => reply.headers(HEADERS).send(info));
}
