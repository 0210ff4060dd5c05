/**
 * `nanogate agent`: the terminal as a caller. One turn with `-m`, else a conversation. It works beside a running gateway and
 * without one. Invariant: what is printed at the end is the whole answer, whatever pieces of its stream were lost.
 */
import { createInterface } from "node:readline/promises";
import { asSessionKey, type OutboundMessage, type TurnResult } from "../bus/messages.js";
import { loadConfig } from "../config/load.js";
import { NanogateError } from "../errors.js";
import { createGateway, type Gateway } from "../gateway.js";
import { createLogger } from "../logger.js";
import type { CommonOptions } from "./options.js";

interface AgentCommandOptions extends CommonOptions {
  message?: string;
  session: string;
  json?: boolean;
}

/** Prints an answer as it comes, and at its end what was missed. */
class Printer {
  #streamId = "";
  #shown = "";

  show(message: OutboundMessage): void {
    const { event, content } = message;
    if (event.type === "tool" && event.phase === "start") this.#line(`· ${event.name}`);
    if (event.type === "stream_reset") this.#line("· the answer begins anew");
    if (event.type === "stream_end" && event.streamId === this.#streamId) this.#line("");
    if (event.type !== "delta") return;
    if (event.streamId !== this.#streamId) this.#begin(event.streamId);
    // A piece behind a lost one is left out: the end prints the rest.
    if (event.offset !== this.#shown.length) return;
    this.#shown += content;
    process.stdout.write(content);
  }

  finish(result: TurnResult): void {
    const isPrefix = result.text.startsWith(this.#shown);
    process.stdout.write(`${isPrefix ? result.text.slice(this.#shown.length) : `\n${result.text}`}\n`);
    this.#begin("");
  }

  #begin(streamId: string): void {
    this.#streamId = streamId;
    this.#shown = "";
  }

  #line(text: string): void {
    if (this.#shown !== "") process.stdout.write("\n");
    if (text !== "") process.stderr.write(`${text}\n`);
    this.#begin("");
  }
}

export async function agentCommand(options: AgentCommandOptions): Promise<number> {
  const { config: file, workspace } = options;
  const loaded = await loadConfig({ file, workspace });
  const level = process.stdin.isTTY || options.message !== undefined ? quieter(loaded.logLevel) : loaded.logLevel;
  const logger = createLogger({ level, secrets: loaded.secrets });
  const sessionKey = keyOf(options.session);
  const gateway = await createGateway({ loaded, role: "direct", logger, signal: new AbortController().signal });
  try {
    return options.message === undefined
      ? await converse(gateway, sessionKey)
      : await once(gateway, { sessionKey, content: options.message, isJson: options.json === true });
  } finally {
    await gateway.stop();
  }
}

/** In a terminal the log's news would be in the way of the answer. */
function quieter(level: string): string {
  return level === "info" ? "warn" : level;
}

function keyOf(text: string): ReturnType<typeof asSessionKey> {
  try {
    return asSessionKey(text);
  } catch (error) {
    throw new NanogateError("USAGE", "A session key has 1 to 512 characters.", { cause: error });
  }
}

interface Once {
  sessionKey: ReturnType<typeof asSessionKey>;
  content: string;
  isJson: boolean;
}

async function once(gateway: Gateway, { sessionKey, content, isJson }: Once): Promise<number> {
  const printer = new Printer();
  const isLive = process.stdout.isTTY && !isJson;
  const { signal } = new AbortController();
  const request = { sessionKey, content, channel: "cli", signal };
  const result = await gateway.direct.process(
    isLive ? { ...request, onEvent: (message) => printer.show(message) } : request,
  );
  if (isJson) process.stdout.write(`${JSON.stringify(result)}\n`);
  else if (isLive) printer.finish(result);
  else process.stdout.write(`${result.text}\n`);
  return result.outcome === "completed" ? 0 : 1;
}

async function converse(gateway: Gateway, sessionKey: Once["sessionKey"]): Promise<number> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout, terminal: process.stdin.isTTY });
  const running = { isBusy: false };
  const { signal } = new AbortController();
  const say = (content: string, onEvent?: (message: OutboundMessage) => void) =>
    gateway.direct.process({
      sessionKey,
      content,
      channel: "cli",
      signal,
      ...(onEvent === undefined ? {} : { onEvent }),
    });
  // Ctrl-C stops what runs; where nothing runs it leaves.
  terminal.on("SIGINT", () => {
    if (running.isBusy) void say("/stop").catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
    else terminal.close();
  });
  process.stderr.write(`Session ${sessionKey}. /help lists the commands; Ctrl-D leaves.\n`);
  terminal.setPrompt("> ");
  terminal.prompt();
  for await (const line of terminal) {
    if (line.trim() !== "") {
      running.isBusy = true;
      await answer(say, line);
      running.isBusy = false;
    }
    terminal.prompt();
  }
  return 0;
}

async function answer(
  say: (content: string, onEvent: (message: OutboundMessage) => void) => Promise<TurnResult>,
  line: string,
): Promise<void> {
  const printer = new Printer();
  try {
    printer.finish(await say(line, (message) => printer.show(message)));
  } catch (error) {
    const text = error instanceof NanogateError ? `${error.message} ${error.advice}` : String(error);
    process.stderr.write(`${text}\n`);
  }
}
