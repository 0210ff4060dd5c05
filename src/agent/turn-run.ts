/**
 * RUN: the runner's events become rows and things shown, each made durable before the next is asked for. It sends no
 * answer at the end, that is RESPOND's. Invariant: no event is lost between the model and the file: a row is appended before
 * the runner goes on.
 */
import type { AssistantRow } from "../session/row.js";
import { apologyFor } from "./apology.js";
import type { Utterance } from "./outgoing.js";
import { addUsage } from "./providers/estimate.js";
import { ProviderError } from "./providers/provider.js";
import { type RunEvent, type RunInput, runAgent } from "./runner.js";
import {
  latencyOf,
  openStreamOf,
  outboundIdOf,
  readTurn,
  streamIdOf,
  TurnAborted,
  type TurnContext,
} from "./turn-context.js";
import { toolRowOf } from "./turn-messages.js";
import { takeIn } from "./turn-steer.js";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;

function showText(turn: TurnContext, { step, text }: EventOf<"text">): void {
  const offset = turn.partial.length;
  turn.partial += text;
  const { route } = turn.message.message;
  if (!route.isStreaming) return;
  const streamId = streamIdOf(turn, step);
  const said = { id: `${streamId}.${offset}`, content: text, event: { type: "delta" as const, streamId, offset } };
  turn.output.show(turn.output.outgoing(route, turn.rows.turnId, said));
}

function show(turn: TurnContext, id: string, event: Utterance["event"], content = ""): void {
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

/** Says to a chat that an answer is being made, again with each step: who shows it stops when nothing comes for long. */
function showWork(turn: TurnContext): void {
  const { output, rows, message } = turn;
  const { route } = message.message;
  if (route.via !== "outbox") return;
  output.show(
    output.outgoing(route, rows.turnId, { id: `${rows.turnId}.work`, content: "", event: { type: "typing" } }),
  );
}

async function onEvent(turn: TurnContext, event: RunEvent): Promise<void> {
  if (event.type === "tool_start" || event.type === "tool_result") showWork(turn);
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
      turn.voided += 1;
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
  const { deps, rows, session, signal, logger } = turn;
  const { provider, model } = deps.providers.resolve();
  const { turnId } = rows;
  const prompt = deps.context.build({ session: session.session, system: await turn.system, turnId });
  return {
    messages: await deps.media.vision.show(prompt, signal),
    provider,
    model,
    tools: deps.tools(),
    firstStep: rows.nextStep,
    maxIterations: deps.settings.maxIterations,
    maxOutputTokens: deps.settings.maxOutputTokens,
    toolResultMaxChars: deps.settings.toolResultMaxChars,
    signal,
    logger,
    takeIn: (where) => takeIn(turn, where),
  };
}

async function drive(turn: TurnContext): Promise<"save" | "park"> {
  showWork(turn);
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
  const { logger, signal } = turn;
  try {
    return (await turn.stopAsked) ? "stop" : await drive(turn);
  } catch (error) {
    const reason: unknown = signal.aborted ? signal.reason : error;
    if (reason instanceof TurnAborted && reason.why === "stopped") return "stop";
    if (!(reason instanceof ProviderError)) throw reason;
    logger.error({ err: reason, code: reason.code, detail: reason.options.detail }, "the model could not be used");
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
