/**
 * `npm run bench [NAME …]`: prints where the milliseconds go. Compare ratios within one run; absolute numbers belong to the
 * machine. Needs a build and a redis-server.
 */
import { addedLatency } from "./added-latency.mjs";
import { delivery } from "./delivery.mjs";
import { idle } from "./idle.mjs";
import { sessionAppend } from "./session-append.mjs";
import { printTable } from "./support.mjs";
import { throughput } from "./throughput.mjs";

const BENCHES = {
  latency: async () =>
    printTable("Added to a turn at 50 busy sessions, ms", ["part", "p50", "p99"], await addedLatency()),
  throughput: async () =>
    printTable("No-op turns in one process", ["what", "turns/s", "of bare bus"], await throughput()),
  delivery: async () => printTable("Delivery, ms unless said otherwise", ["what", "value"], await delivery()),
  append: async () => printTable("Appending a turn, ms", ["session", "median", "ratio"], await sessionAppend()),
  idle: async () => printTable("At rest", ["what", "value"], await idle()),
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(BENCHES, name));
if (unknown.length > 0) {
  console.error(`There is no bench ${unknown.join(", ")}; there are: ${Object.keys(BENCHES).join(", ")}.`);
  process.exit(2);
}
for (const [name, bench] of Object.entries(BENCHES)) if (wanted.length === 0 || wanted.includes(name)) await bench();
process.exit(0);
