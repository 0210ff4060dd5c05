/**
 * Runs the runner to its end and shows its events in a short form. Nothing is asserted here.
 */
import type { Provider } from "../../src/agent/providers/provider.js";
import { type RunEvent, type RunInput, type RunResult, runAgent } from "../../src/agent/runner.js";
import { createLogger, type Logger } from "../../src/logger.js";

export function quietLogger(lines: string[] = []): Logger {
  return createLogger({ level: "debug", secrets: [], destination: { write: (line) => lines.push(line) } });
}

export function inputFor(provider: Provider, overrides: Partial<RunInput> = {}): RunInput {
  return {
    messages: [
      { role: "system", content: "be brief" },
      { role: "user", content: "hello" },
    ],
    provider,
    model: "m",
    tools: [],
    firstStep: 1,
    maxIterations: 10,
    maxOutputTokens: 100,
    toolResultMaxChars: 1000,
    signal: new AbortController().signal,
    logger: quietLogger(),
    takeIn: async () => [],
    ...overrides,
  };
}

export async function run(input: RunInput): Promise<{ events: RunEvent[]; result: RunResult }> {
  const events: RunEvent[] = [];
  const running = runAgent(input);
  while (true) {
    const next = await running.next();
    if (next.done) return { events, result: next.value };
    events.push(next.value);
  }
}

/** One short word per event, for comparing whole sequences. */
export function brief(events: readonly RunEvent[]): string[] {
  return events.map((event) => {
    switch (event.type) {
      case "text":
      case "reasoning":
        return `${event.step} ${event.type} ${JSON.stringify(event.text)}`;
      case "void":
        return `${event.step} void`;
      case "assistant":
        return `${event.step} ${event.isFinal ? "final" : "calls"} ${JSON.stringify(event.content)}`;
      case "tool_start":
        return `${event.step} start ${event.call.id}`;
      case "tool_result":
        return `${event.step} ${event.isError ? "error" : "result"} ${event.call.id}`;
      case "parked":
        return `${event.step} parked ${event.waits.map((wait) => wait.call.id).join()}`;
      default:
        return event satisfies never;
    }
  });
}
