/**
 * The numbers of this process, kept by prom-client in a registry of their own, and their text. It measures nothing of the
 * gateway itself: rooms report through `Metrics`. Invariant: asking for the text never fails, whatever
 * is away: what cannot be known at the moment keeps its last value, and `redis_up` says so.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Logger } from "./logger.js";
import { METRICS, type MetricName, type Metrics } from "./metrics.js";

const PREFIX = "nanogate_";
/** From a step in Redis (a millisecond) to a model that thinks for minutes, s. */
const BUCKETS_SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/** Asked before each text: sets the gauges that only a question to others can tell. */
export type Sampler = (metrics: Metrics) => Promise<void>;

export interface MetricsBook {
  metrics: Metrics;
  contentType: string;
  /** The text for Prometheus. */
  text(sample: Sampler): Promise<string>;
  /** Names of everything that is exposed, with the prefix. */
  names(): string[];
}

interface Instruments {
  counter: Map<MetricName, Counter>;
  duration: Map<MetricName, Histogram>;
  gauge: Map<MetricName, Gauge>;
}

function instrumentsIn(registry: Registry): Instruments {
  const made: Instruments = { counter: new Map(), duration: new Map(), gauge: new Map() };
  for (const [key, { type: kind, help, labels }] of Object.entries(METRICS)) {
    const name = key as MetricName;
    const options = { name: PREFIX + name, help, labelNames: [...labels], registers: [registry] };
    switch (kind) {
      case "counter":
        made.counter.set(name, new Counter(options));
        break;
      case "duration":
        made.duration.set(name, new Histogram({ ...options, buckets: BUCKETS_SECONDS }));
        break;
      case "gauge":
        made.gauge.set(name, new Gauge(options));
        break;
      default:
        kind satisfies never;
    }
  }
  return made;
}

/** Makes the book of one process. */
export function createMetricsBook(logger: Logger): MetricsBook {
  const registry = new Registry();
  const { counter, duration, gauge } = instrumentsIn(registry);
  // Process, heap, garbage collection, and the event loop's lag (monitorEventLoopDelay), emptied by each reading.
  collectDefaultMetrics({ register: registry, prefix: PREFIX });
  const metrics: Metrics = {
    count: (name, labels, by = 1) => counter.get(name)?.inc({ ...labels }, by),
    observe: (name, labels, durationMs) => duration.get(name)?.observe({ ...labels }, durationMs / 1000),
    set: (name, labels, value) => gauge.get(name)?.set({ ...labels }, value),
  };
  return {
    metrics,
    contentType: registry.contentType,
    async text(sample) {
      try {
        await sample(metrics);
      } catch (error) {
        logger.debug({ err: error }, "some metrics could not be found out");
      }
      return registry.metrics();
    },
    names: () => registry.getMetricsAsArray().map(({ name }) => name),
  };
}
