/** A turn whose events and answers a test puts out, over the delivery harness. */
import type { OutboundEvent, OutboundMessage } from "../../src/bus/messages.js";
import { outbound, outboxRoute } from "../fakes/outbound.js";
import type { Delivering } from "./delivery-harness.js";

/** One turn in one place. Numbers grow with each thing that is said. */
export class SpokenTurn {
  #seq = 10;
  readonly #offsets = new Map<string, number>();

  constructor(
    readonly world: Delivering,
    readonly turnId: string,
    readonly place: { chatId: string; threadId?: string } = { chatId: "c1" },
  ) {}

  say(event: OutboundEvent, content = ""): OutboundMessage {
    this.#seq += 1;
    const id = `${this.turnId}.${this.#seq}`;
    return { ...outbound(content, event, id), ...this.place, turnId: this.turnId, seq: this.#seq, replyTo: "q1" };
  }

  /** Puts a live event out; the message, so that it can come once more. */
  show(event: OutboundEvent, content = ""): OutboundMessage {
    const message = this.say(event, content);
    this.world.live.publish("bot", message);
    return message;
  }

  typing(): OutboundMessage {
    return this.show({ type: "typing" });
  }

  delta(streamId: string, content: string): OutboundMessage {
    const offset = this.#offsets.get(streamId) ?? 0;
    this.#offsets.set(streamId, offset + content.length);
    return this.show({ type: "delta", streamId, offset }, content);
  }

  /** A piece that gets lost on its way. */
  lose(streamId: string, content: string): void {
    this.#offsets.set(streamId, (this.#offsets.get(streamId) ?? 0) + content.length);
    this.#seq += 1;
  }

  end(outcome: "completed" | "failed" | "stopped" = "completed"): OutboundMessage {
    return this.show({ type: "turn_end", messageIds: [], outcome, usage: null });
  }

  /** Puts an answer into the outbox; its id. */
  answer(content: string, streamId: string | null = null): string {
    return this.#put(this.say({ type: "final", streamId }, content));
  }

  notice(content: string): string {
    return this.#put(this.say({ type: "notice" }, content));
  }

  #put(message: OutboundMessage): string {
    const route = { ...outboxRoute(this.place.chatId), ...this.place, isStreaming: true };
    this.world.outbox.put({ route, message });
    return message.id;
  }
}
