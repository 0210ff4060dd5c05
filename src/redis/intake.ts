/**
 * The bus' intake over Redis: what anyone may do to a session. It adds no job. Invariant: message n + 1 of a session is
 * not sent to Redis before message n was acknowledged, so a repeated command cannot overtake.
 */
import { randomUUID } from "node:crypto";
import { editedKeyOf, type InboundMessage, type Outgoing, routeKeyOf, type SessionKey } from "../bus/messages.js";
import type { Intake, PublishEntry, Published, StopRequest, Wake } from "../bus/ports.js";
import { NanogateError } from "../errors.js";
import { envelopesOf, mailboxHeaderOf } from "./envelope.js";
import type { Journal } from "./journal.js";
import { integer, list, text } from "./reply.js";
import type { Scripts } from "./scripts.js";

/** Bounds of what may wait. */
export interface IntakeLimits {
  /** Messages in one session's mailbox. */
  maxMailbox: number;
}

export interface IntakeDeps {
  scripts: Scripts;
  journal: Journal;
  limits: IntakeLimits;
  /** Whether Redis is so full that nothing new may be taken in. */
  isUnderPressure: () => boolean;
}

/** Wakes of a script's reply: {{session, wake, delayMs} …}. */
export function wakesFrom(value: unknown): Wake[] {
  return list(value).map((each) => {
    const [key, wake, delayMs] = list(each);
    return { key: text(key) as SessionKey, wake: integer(wake), delayMs: integer(delayMs) };
  });
}

/** Whether a reply of `publish` says that nothing was stored. */
function isRefusal(reply: unknown): boolean {
  return list(reply)[0] === "overloaded";
}

const STATUS: Readonly<Record<string, Published["status"]>> = {
  replaced: "replaced",
  duplicate: "duplicate",
  ignored: "ignored",
};

/** What an edit does: the message it replaces while that one waits, as it would have been had it come so. */
function editOf(message: InboundMessage) {
  const { edits, ...rest } = message;
  if (edits === undefined) return null;
  const instead = { ...rest, kind: "message", id: edits.id } satisfies InboundMessage;
  return { of: editedKeyOf(message), payload: JSON.stringify(instead), isLate: edits.ifAnswered === "answer" };
}

export class RedisIntake implements Intake {
  readonly #deps: IntakeDeps;
  readonly #tails = new Map<SessionKey, Promise<unknown>>();

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
  }

  publish(entry: PublishEntry): Promise<Published> {
    return this.#inOrder(entry.key, () => this.#publish(entry));
  }

  async #publish(entry: PublishEntry): Promise<Published> {
    const { key, inboundKey, message, debounceMs, joins, wakesParked } = entry;
    const args = {
      session: key,
      id: inboundKey,
      route: routeKeyOf(message.route),
      joins,
      header: mailboxHeaderOf(message),
      payload: JSON.stringify(message),
      edit: editOf(message),
      debounceMs,
      wakesParked,
      maxMailbox: this.#deps.limits.maxMailbox,
      pressure: this.#deps.isUnderPressure(),
    };
    const reply = list(await this.#deps.journal.run("publish", args, isRefusal));
    if (isRefusal(reply)) {
      throw new NanogateError("BUS_OVERLOADED", "Too many messages wait already, so this one was not taken in.");
    }
    const isScheduled = text(reply[1]) === "sched";
    const wake = isScheduled ? { key, wake: integer(reply[2]), delayMs: integer(reply[3]) } : null;
    return { status: STATUS[text(reply[0])] ?? "stored", wake };
  }

  stop(request: StopRequest): Promise<{ stopped: number; wakes: Wake[] }> {
    return this.#inOrder(request.key, async () => {
      const id = request.inboundKey ?? randomUUID();
      const reply = list(await this.#deps.journal.run("stop", { session: request.key, id, route: request.route }));
      return { stopped: integer(reply[0]), wakes: wakesFrom(reply[1]) };
    });
  }

  async reply(outgoing: readonly Outgoing[]): Promise<{ wakes: Wake[] }> {
    const reply = list(await this.#deps.journal.run("reply", { outgoing: envelopesOf(outgoing) }));
    return { wakes: wakesFrom(reply[0]) };
  }

  async unpark(key: SessionKey, waitId: string, payload: string): Promise<{ wakes: Wake[] }> {
    const reply = list(await this.#deps.journal.run("unpark", { session: key, wait: waitId, payload }));
    return { wakes: wakesFrom(reply[0]) };
  }

  async peek(key: SessionKey): Promise<Wake | null> {
    const [state, wake, delayMs] = list(await this.#deps.scripts.run("peek", { session: key }));
    return text(state) === "sched" ? { key, wake: integer(wake), delayMs: integer(delayMs) } : null;
  }

  /** Runs the commands of one session one after the other. */
  async #inOrder<T>(key: SessionKey, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    const tail = mine.catch(() => "the caller has the error");
    this.#tails.set(key, tail);
    try {
      return await mine;
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }
}
