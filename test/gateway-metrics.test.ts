/** The book of metrics: its text, its isolation, its patience, and that the documentation lists exactly what it holds. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createMetricsBook } from "../src/gateway-metrics.js";
import { METRICS } from "../src/metrics.js";
import { silent } from "./support/bus-fixture.js";

const nothing = async () => {};

describe("the text", () => {
  it("holds what was reported, durations in seconds, under names that begin with nanogate_", async () => {
    const book = createMetricsBook(silent);
    const { metrics } = book;
    metrics.count("lease_losses_total", {});
    metrics.count("replayed_entries_total", {}, 7);
    metrics.observe("tool_call_seconds", { tool: "read_file", outcome: "ok" }, 1500);
    metrics.set("sessions", { state: "parked" }, 3);
    const text = await book.text(nothing);
    for (const line of [
      "nanogate_lease_losses_total 1",
      "nanogate_replayed_entries_total 7",
      'nanogate_tool_call_seconds_sum{tool="read_file",outcome="ok"} 1.5',
      'nanogate_tool_call_seconds_bucket{le="1",tool="read_file",outcome="ok"} 0',
      'nanogate_tool_call_seconds_bucket{le="2",tool="read_file",outcome="ok"} 1',
      'nanogate_sessions{state="parked"} 3',
      "nanogate_event_loop_stalls_total 0",
    ])
      expect(text.split("\n")).toContain(line);
    expect(text.split("\n").filter((line) => line !== "" && !/^(?:# (?:HELP|TYPE) )?nanogate_/.test(line))).toEqual([]);
  });

  it("tells the lag of the event loop, and what the process needs", async () => {
    const text = await createMetricsBook(silent).text(nothing);
    for (const name of ["p50", "p99", "max"]) expect(text).toMatch(`nanogate_nodejs_eventloop_lag_${name}_seconds `);
    expect(text).toMatch("nanogate_process_resident_memory_bytes ");
  });

  it("is given also when what it asks for cannot be found out", async () => {
    const book = createMetricsBook(silent);
    const text = await book.text(async (metrics) => {
      metrics.set("redis_up", {}, 0);
      throw new Error("Redis is away");
    });
    expect(text).toContain("\nnanogate_redis_up 0\n");
  });

  it("is each book's own", async () => {
    const [one, other] = [createMetricsBook(silent), createMetricsBook(silent)];
    one.metrics.count("swept_sessions_total", {}, 5);
    expect(await one.text(nothing)).toContain("\nnanogate_swept_sessions_total 5\n");
    expect(await other.text(nothing)).toContain("\nnanogate_swept_sessions_total 0\n");
  });
});

describe("docs/operations.md", () => {
  const page = readFileSync(new URL("../docs/operations.md", import.meta.url), "utf8");

  it("lists exactly the metrics there are, each with its type and labels", () => {
    const rows = [...page.matchAll(/^\| `nanogate_(\w+)` \| (\w+) \| (.*?) \| (.*) \|$/gm)].map(
      ([, ...cells]) => cells,
    );
    const types = { counter: "counter", duration: "histogram", gauge: "gauge" };
    const expected = Object.entries(METRICS).map(([name, { type, labels, help }]) => [
      name,
      types[type],
      labels.map((label) => `\`${label}\``).join(", "),
      help,
    ]);
    expect(rows).toEqual(expected);
  });

  it("and the book holds nothing else but what belongs to the process and to Node", () => {
    const ours = new Set(Object.keys(METRICS).map((name) => `nanogate_${name}`));
    const others = createMetricsBook(silent)
      .names()
      .filter((name) => !ours.has(name));
    expect(others.filter((name) => !/^nanogate_(?:process|nodejs)_/.test(name))).toEqual([]);
    expect(others.length).toBeGreaterThan(5);
  });

  it("names only metrics there are, and has four alerts", () => {
    const known = createMetricsBook(silent).names();
    const named = [...page.matchAll(/\bnanogate_[a-z0-9_]+/g)].map(([name]) => name);
    const unknown = named.filter((name) => {
      const whole = name.replace(/_(?:bucket|count|sum)$/, "");
      // A name that ends so is a beginning of names.
      return !name.endsWith("_") && !known.includes(name) && !known.includes(whole);
    });
    expect(unknown).toEqual([]);
    expect(page.match(/^ +- alert: \w+$/gm)).toHaveLength(4);
  });
});
