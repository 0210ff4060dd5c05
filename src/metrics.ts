/**
 * What can be measured: the catalogue of metrics, and the seam through which rooms report. It keeps no numbers and knows
 * no exposition format; the composition root does. Invariant: labels are names from a small fixed set, never an id or a
 * text of a person, so that the number of series is bounded.
 */

/** One metric. Counters only grow; durations become histograms in seconds; gauges are a value of this moment. */
interface Definition {
  type: "counter" | "duration" | "gauge";
  help: string;
  labels: readonly string[];
}

/** Every metric of ours, without its prefix. `docs/operations.md` lists exactly these (a test compares them). */
export const METRICS = {
  intake_seconds: {
    type: "duration",
    help: "From a message that a channel hands in until it is stored or refused.",
    labels: ["channel", "outcome"],
  },
  turn_seconds: { type: "duration", help: "One try of a turn, from its lease to its end.", labels: ["outcome"] },
  turn_state_seconds: { type: "duration", help: "One state of a turn.", labels: ["state", "outcome"] },
  model_first_byte_seconds: {
    type: "duration",
    help: "From a model request to the first piece of its answer.",
    labels: ["provider"],
  },
  model_call_seconds: {
    type: "duration",
    help: "One model request to its end, each retry and each fallback on its own.",
    labels: ["provider", "outcome"],
  },
  tool_call_seconds: { type: "duration", help: "One tool call.", labels: ["tool", "outcome"] },
  settle_seconds: {
    type: "duration",
    help: "The step in which answers leave and their messages are done.",
    labels: ["outcome"],
  },
  delivery_seconds: {
    type: "duration",
    help: "One send of a part to a platform, each try on its own.",
    labels: ["channel", "outcome"],
  },
  transcription_seconds: {
    type: "duration",
    help: "One spoken message to its words, or to the reason why there are none.",
    labels: ["outcome"],
  },
  media_files_total: {
    type: "counter",
    help: "Files that people sent: kept, refused (too_large, empty, no_disk), broken_off on their way, expired.",
    labels: ["outcome"],
  },
  lease_losses_total: { type: "counter", help: "Leases of sessions that ended under their holder.", labels: [] },
  refused_writes_total: {
    type: "counter",
    help: "Writes refused because another process holds the session or the account (LEASE_LOST).",
    labels: ["operation"],
  },
  reaped_sessions_total: {
    type: "counter",
    help: "Sessions taken from a holder that ended or fell silent.",
    labels: [],
  },
  swept_sessions_total: { type: "counter", help: "Sessions whose lost wake-up was found and made anew.", labels: [] },
  replayed_entries_total: {
    type: "counter",
    help: "Acknowledged entries repeated after Redis was restarted.",
    labels: [],
  },
  redis_reconnects_total: {
    type: "counter",
    help: "Times that the connection to Redis was lost and had to be made anew.",
    labels: [],
  },
  event_loop_stalls_total: {
    type: "counter",
    help: "Times that the event loop stood still for longer than a lease lasts.",
    labels: [],
  },
  redis_up: { type: "gauge", help: "1 while Redis answers.", labels: [] },
  redis_memory_used_bytes: { type: "gauge", help: "Memory in use, as Redis says.", labels: [] },
  redis_memory_limit_bytes: { type: "gauge", help: "maxmemory of Redis; 0 for none.", labels: [] },
  redis_memory_pressure: {
    type: "gauge",
    help: "1 while new messages are refused because Redis is nearly full.",
    labels: [],
  },
  sessions: {
    type: "gauge",
    help: "Sessions over all processes: scheduled, running, parked, waiting_for_slot.",
    labels: ["state"],
  },
  oldest_waiting_seconds: {
    type: "gauge",
    help: "How long the session that has been due for longest has waited for a worker; 0 when none waits.",
    labels: [],
  },
  workers: { type: "gauge", help: "Live workers over all processes.", labels: [] },
  outbox_waiting: { type: "gauge", help: "Deliveries that wait in an account's outbox.", labels: ["account"] },
  dead_letters: {
    type: "gauge",
    help: "Messages (inbound) and deliveries (outbound) that were given up and wait for a person.",
    labels: ["direction"],
  },
  websocket_connections: { type: "gauge", help: "Open WebSocket connections of this process.", labels: [] },
} as const satisfies Readonly<Record<string, Definition>>;

type Catalogue = typeof METRICS;
export type MetricName = keyof Catalogue;
type NamesOf<Type extends Definition["type"]> = {
  [Name in MetricName]: Catalogue[Name]["type"] extends Type ? Name : never;
}[MetricName];
/** The labels a metric must be given. */
export type LabelsOf<Name extends MetricName> = Readonly<Record<Catalogue[Name]["labels"][number], string>>;

/** Where rooms report. No method throws or waits. */
export interface Metrics {
  count<Name extends NamesOf<"counter">>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  observe<Name extends NamesOf<"duration">>(name: Name, labels: LabelsOf<Name>, durationMs: number): void;
  set<Name extends NamesOf<"gauge">>(name: Name, labels: LabelsOf<Name>, value: number): void;
}

/** Keeps nothing: for commands and tests. */
export const noMetrics: Metrics = { count: () => {}, observe: () => {}, set: () => {} };

/** Runs `work` and reports how long it took. `outcomeOf` names its end from what it returned or threw. */
export async function timed<T>(
  work: () => Promise<T>,
  { onEnd, outcomeOf }: { onEnd: (outcome: string, durationMs: number) => void; outcomeOf: (end: End<T>) => string },
): Promise<T> {
  const startedMs = performance.now();
  const tell = (end: End<T>) => onEnd(outcomeOf(end), performance.now() - startedMs);
  try {
    const value = await work();
    tell({ ok: true, value });
    return value;
  } catch (error) {
    tell({ ok: false, error });
    throw error;
  }
}

/** How work ended. */
export type End<T> = { ok: true; value: T } | { ok: false; error: unknown };
