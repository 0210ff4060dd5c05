/** Metrics that keep what was reported, in order, for a test to compare. */
import type { Metrics } from "../../src/metrics.js";

export interface Report {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

export class KeptMetrics implements Metrics {
  readonly reports: Report[] = [];

  count: Metrics["count"] = (name, labels, by = 1) => void this.reports.push({ name, labels, value: by });
  observe: Metrics["observe"] = (name, labels, value) => void this.reports.push({ name, labels, value });
  set: Metrics["set"] = (name, labels, value) => void this.reports.push({ name, labels, value });

  /** The labels under which a metric was reported, in order. */
  labelsOf(name: string): Report["labels"][] {
    return this.reports.filter((each) => each.name === name).map(({ labels }) => labels);
  }
}
