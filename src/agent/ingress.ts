/**
 * The way in, the same for channels and direct callers: a command that goes round the queue is carried out, an empty
 * message is answered at once, everything else is stored in its session. It checks no access: whoever calls it has. Invariant: when it returns, what it says has
 * happened is durable, and repeating a message does nothing twice.
 */
import type { Bus } from "../bus/bus.js";
import { inboundIds } from "../bus/log-ids.js";
import { type InboundMessage, inboundKeyOf, routeKeyOf, type SessionKey, turnIdOf } from "../bus/messages.js";
import type { CommandName } from "../commands.js";
import { NanogateError } from "../errors.js";
import type { Logger } from "../logger.js";
import { type End, type Metrics, timed } from "../metrics.js";
import type { PairingCommand } from "./commands/pairing.js";
import { commandMistake, readCommand } from "./commands/parse.js";
import { outgoingOf } from "./outgoing.js";

export interface IngressDeps {
  bus: Bus;
  /** Fragments of a person are joined for this long, ms. */
  debounceMs: number;
  /** The text of `/help` and `/status`. */
  describe: (command: "help" | "status", key: SessionKey) => Promise<string>;
  pairing: PairingCommand;
  logger: Logger;
  metrics: Metrics;
}

/** What became of a message. `text` is the answer of a command that was carried out at once. */
export type Taken = { sessionKey: SessionKey; inboundKey: string; turnId: string } & (
  | { status: "stored" | "duplicate" | "ignored" }
  | { status: "command"; text: string }
);

/** A person's message with nothing in it that a model could answer. */
function isBlank({ role, content, media, replyTo }: InboundMessage): boolean {
  return role === "user" && content.trim() === "" && media.length === 0 && replyTo === undefined;
}

const TAKEN: ReadonlySet<string> = new Set(["stored", "duplicate", "command", "ignored"] satisfies Taken["status"][]);

function outcomeOf(end: End<Taken>): string {
  if (end.ok) return end.value.status;
  return end.error instanceof NanogateError ? end.error.code : "error";
}

export class Ingress {
  readonly #deps: IngressDeps;

  constructor(deps: IngressDeps) {
    this.#deps = deps;
  }

  /** Takes a message in. Throws `BUS_OVERLOADED` or `BUS_UNAVAILABLE`, and then it must not be acknowledged. */
  async accept(message: InboundMessage): Promise<Taken> {
    const { logger, metrics } = this.#deps;
    const { channel } = message;
    const ids = { channel, ...inboundIds(message) };
    const taken = await timed(() => this.#take(message), {
      onEnd: (outcome, ms) => {
        metrics.observe("intake_seconds", { channel, outcome }, ms);
        if (!TAKEN.has(outcome)) logger.warn({ ...ids, outcome }, "a message was not taken in");
      },
      outcomeOf,
    });
    const { sessionKey: session, turnId: turn, status } = taken;
    logger.info({ ...ids, session, turn, status }, "a message was taken in");
    return taken;
  }

  async #take(message: InboundMessage): Promise<Taken> {
    if (message.kind === "edit") return this.#edit(message);
    const parsed = readCommand(message);
    switch (parsed.kind) {
      case "text":
        if (isBlank(message)) return this.#answer(message, "Your message is empty.");
        // A direct caller waits for the answer to its own question.
        return this.#publish(message, { joins: message.role === "user" && message.route.via !== "result" });
      case "command":
        return this.#command(message, parsed.name, parsed.args);
      case "unknown":
      case "needless_arguments":
        return this.#answer(message, commandMistake(parsed));
      default:
        return parsed satisfies never;
    }
  }

  /** An edit carries no command out: what it edits has been carried out, and what it edits away cannot be unsaid. */
  async #edit(message: InboundMessage): Promise<Taken> {
    if (readCommand(message).kind === "text" && !isBlank(message)) return this.#publish(message, { joins: true });
    const inboundKey = inboundKeyOf(message);
    const sessionKey = this.#deps.bus.sessionOf(message);
    return { status: "ignored", sessionKey, inboundKey, turnId: turnIdOf(inboundKey) };
  }

  async #publish(message: InboundMessage, { joins }: { joins: boolean }): Promise<Taken> {
    const mayWait = joins && message.media.length === 0 && message.kind === "message";
    const debounceMs = Math.max(mayWait ? this.#deps.debounceMs : 0, message.gatherMs ?? 0);
    return this.#deps.bus.publishInbound(message, { joins, debounceMs, wakesParked: false });
  }

  async #command(message: InboundMessage, name: CommandName, args: string): Promise<Taken> {
    const key = this.#deps.bus.sessionOf(message);
    switch (name) {
      case "help":
      case "status":
        return this.#answer(message, await this.#deps.describe(name, key));
      case "pairing":
        return this.#answer(message, await this.#deps.pairing(message, args));
      case "stop":
        return this.#stop(message, args);
      case "new":
        // What runs and waits here belongs to the conversation that ends.
        await this.#deps.bus.stop({
          key,
          inboundKey: `${inboundKeyOf(message)}:stop`,
          route: routeKeyOf(message.route),
        });
        return this.#publish(message, { joins: false });
      default:
        return name satisfies never;
    }
  }

  async #stop(message: InboundMessage, args: string): Promise<Taken> {
    const isAll = args.toLowerCase() === "all";
    if (args !== "" && !isAll) return this.#answer(message, "Use /stop, or /stop all.");
    if (isAll && !message.isOwner) return this.#answer(message, "Only an owner may stop everything. Use /stop.");
    const route = isAll ? "*" : routeKeyOf(message.route);
    const key = this.#deps.bus.sessionOf(message);
    const count = await this.#deps.bus.stop({ key, inboundKey: inboundKeyOf(message), route });
    const what = count === 1 ? "1 message" : `${count} messages`;
    return this.#answer(message, count === 0 ? "There is nothing to stop." : `Stopped ${what}.`);
  }

  /** Answers beside the queue; sent once, however often the message comes. */
  async #answer(message: InboundMessage, text: string): Promise<Taken> {
    const inboundKey = inboundKeyOf(message);
    const turnId = turnIdOf(inboundKey);
    const { route } = message;
    const end = { type: "turn_end" as const, messageIds: [message.id], outcome: "completed" as const, usage: null };
    await this.#deps.bus.reply([
      outgoingOf(route, { turnId, seq: 0 }, { id: `${turnId}.reply`, content: text, event: { type: "notice" } }),
      outgoingOf(route, { turnId, seq: 1 }, { id: `${turnId}.end`, content: "", event: end }),
    ]);
    return { status: "command", text, sessionKey: this.#deps.bus.sessionOf(message), inboundKey, turnId };
  }
}
