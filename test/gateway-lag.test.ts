/** A process that stood still counts it each time and says it once; one that is merely busy says nothing. */
import { expect, it } from "vitest";
import { watchEventLoop } from "../src/gateway-lag.js";
import { createLogger } from "../src/logger.js";
import { KeptMetrics } from "./fakes/kept-metrics.js";
import { until } from "./support/bus-fixture.js";

function standStill(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

it("counts every stall above the limit and logs the first", async () => {
  const lines: string[] = [];
  const logger = createLogger({ level: "info", secrets: [], destination: { write: (line) => lines.push(line) } });
  const metrics = new KeptMetrics();
  const end = watchEventLoop({ limitMs: 400, logger, metrics });
  for (const stalls of [1, 2]) {
    standStill(900);
    await until(() => metrics.labelsOf("event_loop_stalls_total").length >= stalls);
  }
  end();
  expect(metrics.labelsOf("event_loop_stalls_total")).toHaveLength(2);
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "").limitMs).toBe(400);
});
