/**
 * RUN: the runner's events become rows and things shown, each made durable before the next is asked for. It sends no
 * answer at the end, that is RESPOND's. Invariant: no event is lost between the model and the file: a row is appended before
 * the runner goes on.
 */
import { type MailboxMessage, routeKeyOf } from "../bus/messages.js";
import type { AssistantRow } from "../session/row.js";
import { apologyFor } from "./apology.js";
import { addUsage } from "./providers/estimate.js";
import { type ChatMessage, ProviderError } from "./providers/provider.js";
import { type RunEvent, type RunInput, runAgent } from "./runner.js";
import { latencyOf, openStreamOf, outboundIdOf, streamIdOf, TurnAborted, type TurnContext } from "./turn-context.js";
import { toolRowOf, userRowOf } from "./turn-messages.js";
import { deliver } from "./turn-respond.js";
import { readTurn } from "./turn-restore.js";

/** Messages taken in at one safe point, and safe points of a turn at which any are. [LOOP-19] */
const MAX_TAKEN_AT_ONCE = 3;
const MAX_TIMES_TAKEN = 5;

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;

export function appendUserRow(turn: TurnContext, messages: readonly MailboxMessage[]): Promise<void> {
  return turn.session.append([userRowOf(messages, turn.rows.turnId, turn.rows.nextStep - 1)]);
}

/** A safe point: is it stopped, and what came in meanwhile? */
async function takeIn(turn: TurnContext, where: "after_tools" | "after_final" | "at_limit"): Promise<ChatMessage[]> {
  turn.signal.throwIfAborted();
  const { deps, lease, rows, message } = turn;
  const maySteer = deps.settings.queueMode === "steer" && turn.takenIn < MAX_TIMES_TAKEN;
  const { stopped, taken } = await deps.bus.check({
    key: lease.key,
    fence: lease.fence,
    inboundKeys: rows.inboundKeys,
    route: routeKeyOf(message.message.route),
    take: maySteer ? MAX_TAKEN_AT_ONCE : 0,
  });
  if (stopped.length > 0) throw new TurnAborted("stopped");
  if (taken.length === 0) return [];
  turn.takenIn += 1;
  if (where === "after_final") await deliver(turn, "stay");
  await appendUserRow(turn, taken);
  readTurn(turn);
  const row = userRowOf(taken, rows.turnId, 0);
  return [{ role: "user", content: typeof row.content === "string" ? row.content : "" }];
}

function showText(turn: TurnContext, { step, text }: EventOf<"text">): void {
  const offset = turn.partial.length;
  turn.partial += text;
  const { route } = turn.message.message;
  if (!route.isStreaming) return;
  const streamId = streamIdOf(turn, step);
  const said = { id: `${streamId}.${offset}`, content: text, event: { type: "delta" as const, streamId, offset } };
  turn.output.show(turn.output.outgoing(route, turn.rows.turnId, said));
}

function show(
  turn: TurnContext,
  id: string,
  event: Parameters<typeof turn.output.outgoing>[2]["event"],
  content = "",
): void {
  const { route } = turn.message.message;
  if (route.isStreaming) turn.output.show(turn.output.outgoing(route, turn.rows.turnId, { id, content, event }));
}

async function storeAssistant(turn: TurnContext, event: EventOf<"assistant">): Promise<void> {
  const { step, content, toolCalls, reasoning, usage, isFinal } = event;
  const { turnId } = turn.rows;
  const outboundId = outboundIdOf(turnId, step);
  const latencyMs = latencyOf(turn);
  const calls = toolCalls.map(({ id, name, arguments: text }) => ({
    id,
    type: "function" as const,
    function: { name, arguments: text },
  }));
  const row: AssistantRow = {
    role: "assistant",
    content,
    turn_id: turnId,
    step,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(reasoning === null ? {} : { reasoning_content: reasoning }),
    ...(usage === null ? {} : { usage }),
    ...(isFinal ? { final: true, outbound_id: outboundId, latency_ms: latencyMs } : {}),
  };
  await turn.session.append([row]);
  turn.rows = { ...turn.rows, nextStep: step + 1, usage: addUsage(turn.rows.usage, usage) };
  if (reasoning !== null)
    show(turn, `${outboundId}.reasoned`, { type: "reasoning_end", streamId: streamIdOf(turn, step) });
  const streamId = openStreamOf(turn, step);
  if (isFinal) turn.answer = { outcome: "completed", text: content, outboundId, kind: "final", step, latencyMs };
  else if (streamId !== null) show(turn, `${streamId}.end`, { type: "stream_end", streamId }, content);
  turn.partial = "";
}

async function storeResult(turn: TurnContext, event: EventOf<"tool_result">): Promise<void> {
  const { step, call, text, isError } = event;
  turn.deps.faults("tool.finished");
  const wire = { id: call.id, type: "function" as const, function: { name: call.name, arguments: call.arguments } };
  await turn.session.append([toolRowOf({ call: wire, turnId: turn.rows.turnId, step, text, isError })]);
  const phase = isError ? "error" : "end";
  show(turn, `${turn.rows.turnId}.${call.id}.${phase}`, { type: "tool", callId: call.id, name: call.name, phase });
}

async function onEvent(turn: TurnContext, event: RunEvent): Promise<void> {
  switch (event.type) {
    case "text":
      return showText(turn, event);
    case "reasoning": {
      const streamId = streamIdOf(turn, event.step);
      return show(turn, `${streamId}.reasoning`, { type: "reasoning_delta", streamId }, event.text);
    }
    case "void": {
      const streamId = openStreamOf(turn, event.step);
      turn.partial = "";
      if (streamId !== null) show(turn, `${streamId}.void`, { type: "stream_reset", streamId });
      return;
    }
    case "assistant":
      return storeAssistant(turn, event);
    case "tool_start":
      return show(turn, `${turn.rows.turnId}.${event.call.id}.start`, {
        type: "tool",
        callId: event.call.id,
        name: event.call.name,
        phase: "start",
      });
    case "tool_result":
      return storeResult(turn, event);
    case "parked":
      return turn.session.append(
        event.waits.map(({ call, waitId, untilMs }) => ({
          role: "wait" as const,
          content: null,
          call_id: call.id,
          wait_id: waitId,
          until: untilMs,
          turn_id: turn.rows.turnId,
          step: event.step,
        })),
      );
    default:
      event satisfies never;
  }
}

async function runInput(turn: TurnContext): Promise<RunInput> {
  const { deps, rows, session, message, signal } = turn;
  const { provider, model } = deps.providers.resolve();
  const { channel } = message.message;
  return {
    messages: await deps.context.build({ session: session.session, channel }),
    provider,
    model,
    tools: deps.tools(),
    firstStep: rows.nextStep,
    maxIterations: Math.max(1, deps.settings.maxIterations - (rows.nextStep - 1)),
    maxOutputTokens: deps.settings.maxOutputTokens,
    toolResultMaxChars: deps.settings.toolResultMaxChars,
    signal,
    logger: deps.logger,
    takeIn: (where) => takeIn(turn, where),
  };
}

async function drive(turn: TurnContext): Promise<"save" | "park"> {
  const run = runAgent(await runInput(turn));
  try {
    for (;;) {
      const { value, done } = await run.next();
      if (done === true) {
        readTurn(turn);
        return value.stop === "parked" ? "park" : "save";
      }
      await onEvent(turn, value);
    }
  } finally {
    await run.return({ stop: "completed", text: "", usage: null });
  }
}

/** Runs the model and its tools. A model that fails ends the turn with an apology; what else fails is thrown. */
export async function run(turn: TurnContext): Promise<"save" | "park" | "stop" | "fail"> {
  const { deps, lease, signal } = turn;
  try {
    return await drive(turn);
  } catch (error) {
    const reason: unknown = signal.aborted ? signal.reason : error;
    if (reason instanceof TurnAborted && reason.why === "stopped") return "stop";
    if (!(reason instanceof ProviderError)) throw reason;
    const ids = { session: lease.key, turn: turn.rows.turnId, code: reason.code, detail: reason.options.detail };
    deps.logger.error({ err: reason, ...ids }, "the model could not be used");
    turn.answer = failedAnswer(turn, reason);
    return "fail";
  }
}

function failedAnswer(turn: TurnContext, error: ProviderError): NonNullable<TurnContext["answer"]> {
  const step = turn.rows.nextStep;
  const outboundId = outboundIdOf(turn.rows.turnId, step);
  return {
    outcome: "failed",
    text: apologyFor(error.code),
    outboundId,
    kind: "notice",
    step,
    latencyMs: latencyOf(turn),
  };
}
