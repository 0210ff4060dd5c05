/** A tool that asks another session and waits for its answer, as a sub-agent will: the turn is parked meanwhile. */
import { z } from "zod";
import type { Ingress } from "../../src/agent/ingress.js";
import type { Tool } from "../../src/agent/tools/tool.js";
import type { InboundMessage } from "../../src/bus/messages.js";
import { inbound, sessionKey } from "./bus-fixture.js";

/** The message that a child is asked with; its answer goes to the parent's call `waitId`. */
export function childMessage(child: string, text: string, parent: { key: string; waitId: string }): InboundMessage {
  const { key, waitId } = parent;
  return inbound(text, {
    id: waitId,
    role: "system",
    sessionKeyOverride: sessionKey(`sub:${child}`),
    route: {
      via: "call",
      parent: sessionKey(key),
      waitId,
      account: "sub",
      channel: "sub",
      chatId: child,
      isStreaming: false,
    },
  });
}

const input = z.object({
  /** The session that asks, since a tool does not know its own. */
  from: z.string(),
  child: z.string(),
  text: z.string(),
  /** How long it waits at most, ms. */
  waitMs: z.number().default(60_000),
  /** Asks nobody: the answer never comes. */
  isAlone: z.boolean().default(false),
});

export function childTool(accept: Ingress["accept"]): Tool<z.output<typeof input>> {
  return {
    name: "ask",
    description: "asks another session",
    input,
    isReadOnly: false,
    run: async ({ from, child, text, waitMs, isAlone }, { callId }) => {
      const waitId = `${from}:${callId}`.replaceAll(" ", "_");
      const message = childMessage(child, text, { key: from, waitId });
      if (!isAlone) await accept(message);
      return { type: "wait", waitId, untilMs: Date.now() + waitMs };
    },
  };
}

/** What a user writes to make the model ask `child`. */
export const asking = (from: string, child: string, text: string, more: object = {}): string =>
  `call ask ${JSON.stringify({ from, child, text, ...more })}`;
