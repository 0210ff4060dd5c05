/**
 * The invariants of the bus one by one, each with the tests that would fail without it. This only checks that those tests
 * are there under their names: whoever renames or drops one is sent here.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const INVARIANTS: ReadonlyArray<{ says: string; tests: ReadonlyArray<readonly [file: string, title: string]> }> = [
  {
    says: "acknowledged means stored; a bound reached means push-back",
    tests: [
      ["channels/websocket/protocol.test.ts", "says nothing of a message before it is stored, and keeps the order"],
      ["redis/states.test.ts", "refuses whole over the bound, and takes in again once there is room"],
      ["e2e/redis-outage.test.ts", "away for longer than the deadline: told so, nothing stored"],
    ],
  },
  {
    says: "the same platform message makes one turn",
    tests: [
      ["redis/states.test.ts", "stores a message once and schedules its session"],
      ["e2e/kill-doors.test.ts", "one turn when the client repeats its message at another door"],
      ["e2e/concurrency-order.test.ts", "makes one turn of an id that is sent ten times over two doors"],
    ],
  },
  {
    says: "one lease a session; turns run in the order of publishing",
    tests: [
      ["redis/states.test.ts", "answers stale to an old wake number and to a session that runs"],
      ["e2e/concurrency-order.test.ts", "answers 200 messages of one session, posted by two clients at two doors"],
    ],
  },
  {
    says: "fences only grow; what a smaller one does has no effect",
    tests: [
      ["redis/states.test.ts", "gives fences that only grow"],
      ["redis/outage-lives.test.ts", "a lease of the former life is lost, and its fence is never given again"],
      ["e2e/zombies.test.ts", "worker asleep at %s"],
    ],
  },
  {
    says: "a lost lease ends the turn's work; a dead process's leases are reaped",
    tests: [
      ["redis/ends.test.ts", "takes a session whose lease ended, with a new fence"],
      ["e2e/worker-deaths.test.ts", "takes the session of a killed worker of this host long before its lease ends"],
      ["e2e/zombies.test.ts", "worker asleep while its model answers"],
    ],
  },
  {
    says: "no wake-up is lost",
    tests: [
      ["redis/ends.test.ts", "finds a session whose job is lost, and not one whose job waits"],
      ["redis/states.test.ts", "takes an idle session and gives it back idle, or scheduled when mail came"],
      ["e2e/kill-points.test.ts", "wake.fetched"],
    ],
  },
  {
    says: "answers and settlement are one step; whatever is repeated sends nothing twice",
    tests: [
      ["redis/states.test.ts", "sends answers, results and the next message in one step, and repeated nothing twice"],
      ["redis/outage-cuts.test.ts", "settle answers once and goes on with the next"],
      ["e2e/kill-points.test.ts", "settle.after"],
    ],
  },
  {
    says: "what has a receipt is not sent again; what failed for good is in the dead letters",
    tests: [
      ["channels/delivery.test.ts", "does not send the parts before it again"],
      ["channels/delivery.test.ts", "keep a new owner from sending a part again"],
      ["redis/dead-letters.test.ts", "carries a decision out once, however often its call is repeated"],
    ],
  },
  {
    says: "a dead worker's turn is finished by another from the stored rows",
    tests: [
      ["e2e/kill-points.test.ts", "tool.finished"],
      ["agent/turn-resume.test.ts", "with no call answered closes them all as interrupted and goes on"],
      ["e2e/kill-points.test.ts", "ends the stream of a dead worker with the answer that it had stored"],
    ],
  },
  {
    says: "/stop is durable",
    tests: [
      ["redis/ends.test.ts", "takes out what waits, marks what runs, counts both, and says the same when repeated"],
      ["e2e/kill-stops.test.ts", "worker that was frozen when the stop came is killed"],
    ],
  },
  {
    says: "Redis restarting, killed, away or full loses nothing acknowledged",
    tests: [
      ["redis/outage-lives.test.ts", "an older state: what was acknowledged since is there again, in order, once"],
      ["redis/outage-full.test.ts", "refuses what is new, works off what waits, and takes in again"],
      ["e2e/redis-outage.test.ts", "killed and restarted, twice, while messages flow"],
    ],
  },
  {
    says: "start refuses Redis older than 7.0 and warns about a policy that evicts",
    tests: [
      ["redis/outage-connect.test.ts", "an old server is refused"],
      ["redis/outage-connect.test.ts", "a server that may evict keys is used, with one warning"],
    ],
  },
];

function sourceOf(file: string): string {
  return readFileSync(fileURLToPath(new URL(`../${file}`, import.meta.url)), "utf8");
}

describe("the twelve invariants", () => {
  it("are twelve", () => expect(INVARIANTS).toHaveLength(12));

  it.each(INVARIANTS.map((invariant, index) => ({ n: index + 1, ...invariant })))(
    "invariant $n: $says",
    ({ tests }) => {
      for (const [file, title] of tests) expect(sourceOf(file), `${file} has no test "${title}"`).toContain(title);
    },
  );
});
