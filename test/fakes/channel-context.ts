/** What a channel is given, in memory: everybody may speak, everything is stored and kept in lists; a test changes what it is about. */
import pino from "pino";
import { asSessionKey, type InboundMessage } from "../../src/bus/messages.js";
import type { ChannelContext } from "../../src/channels/channel.js";
import type { AccountMemory, MediaShelf } from "../../src/channels/ports.js";

export class MemoryAccount implements AccountMemory {
  readonly kept = new Map<string, string>();

  get = async (name: string) => this.kept.get(name) ?? null;
  set = async (name: string, value: string) => void this.kept.set(name, value);
  list = async (prefix: string) => new Map([...this.kept].filter(([name]) => name.startsWith(prefix)));
  forget = async (name: string) => void this.kept.delete(name);
}

/** A shelf for files that nobody looks at. */
export function noShelf(): MediaShelf {
  const refuse = async () => {
    throw new Error("this test keeps no files");
  };
  return { maxBytes: 20_000_000, save: refuse, pathOf: refuse };
}

/** A context; what is accepted is added to `accepted`. */
export function testContext(given: Partial<ChannelContext> & { accepted?: InboundMessage[] } = {}): ChannelContext {
  const { accepted, ...overrides } = given;
  return {
    admit: async () => ({ kind: "admitted", isOwner: false }),
    accept: async (message) => {
      accepted?.push(message);
      return { status: "stored", sessionKey: asSessionKey("s"), turnId: "t" };
    },
    media: noShelf(),
    memory: new MemoryAccount(),
    logger: pino({ level: "silent" }),
    ...overrides,
  };
}
