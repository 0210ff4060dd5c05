/**
 * `nanogate status`: what runs and how much waits, over all processes of a workspace. It looks, and starts nothing.
 * Invariant: that nothing runs is an answer and no failure; what could not be found out is said and ends with 1.
 */
import type { Depths } from "../bus/ports.js";
import { NanogateError } from "../errors.js";
import { modelLabelOf, settleModel } from "../gateway-models.js";
import type { AccountView, LiveProcess, RedisView } from "../redis/view.js";
import { findWorkspace } from "../workspace/workspace.js";
import { type GatewayLook, lookForGateway } from "./gateway-look.js";
import { type Opened, openConfig } from "./open.js";
import { lookIntoRedis } from "./open-redis.js";
import type { AnswerOptions } from "./options.js";
import { count, oneLine, say, sayJson, sayTable, span } from "./output.js";

/** What Redis says of a workspace. */
interface Inside {
  version: string;
  depths: Depths;
  processes: LiveProcess[];
  accounts: AccountView[];
  deadLetters: { inbound: number; outbound: number };
}

type RedisPart = { state: "running" } & Inside;
type RedisState = RedisPart | { state: "not running" } | { state: "failed"; problem: string; advice: string };

export async function statusCommand(options: AnswerOptions): Promise<number> {
  const opened = await openConfig(options);
  const { config, file } = opened.loaded;
  const workspace = await findWorkspace(config.workspace);
  const [redis, gateway] = await Promise.all([
    workspace === null ? { state: "not running" as const } : redisState(opened, workspace.id),
    lookForGateway(config.gateway),
  ]);
  const model = modelLabelOf((await settleModel(opened)).config);
  const place = { file, workspace: config.workspace, isUsed: workspace !== null, model };
  if (options.json === true) sayJson({ ...place, gateway, redis });
  else print(place, gateway, redis);
  return redis.state === "failed" ? 1 : 0;
}

async function redisState(opened: Opened, workspaceId: string): Promise<RedisState> {
  try {
    return await lookIntoRedis(opened, workspaceId, async (view) => {
      return view === null ? { state: "not running" } : { state: "running", ...(await lookInside(view)) };
    });
  } catch (error) {
    if (!(error instanceof NanogateError)) throw error;
    return { state: "failed", problem: error.message, advice: error.advice };
  }
}

async function lookInside(view: RedisView): Promise<Inside> {
  const [depths, processes, accounts, deadLetters] = await Promise.all([
    view.depths(),
    view.processes(),
    view.accounts(),
    view.deadLetterCounts(),
  ]);
  return { version: view.facts.version, depths, processes, accounts, deadLetters };
}

interface Place {
  file: string | null;
  workspace: string;
  isUsed: boolean;
  model: string;
}

function print(place: Place, gateway: GatewayLook, redis: RedisState): void {
  sayTable([
    ["config", place.file ?? "none; defaults"],
    ["workspace", `${place.workspace}${place.isUsed ? "" : " (not used yet)"}`],
    ["model", oneLine(place.model)],
    ["gateway", gatewayText(gateway)],
    ...redisRows(redis),
  ]);
  if (gateway.state !== "gateway") return;
  for (const { part, problem, advice } of gateway.problems)
    say(`! ${oneLine(part)}: ${oneLine(`${problem} ${advice}`)}`);
}

function gatewayText(gateway: GatewayLook): string {
  switch (gateway.state) {
    case "none":
      return "none answers at the configured address";
    case "other":
      return "another program answers at the configured address";
    case "gateway": {
      const health = gateway.problems.length === 0 ? "ready" : "not ready";
      return `${health} at ${gateway.url} (role ${oneLine(gateway.role)}, version ${oneLine(gateway.version)}, pid ${gateway.pid})`;
    }
    default:
      return gateway satisfies never;
  }
}

function redisRows(redis: RedisState): string[][] {
  switch (redis.state) {
    case "not running":
      return [["redis", "not running; it starts with the gateway"]];
    case "failed":
      return [["redis", oneLine(`${redis.problem} ${redis.advice}`)]];
    case "running":
      return insideRows(redis);
    default:
      return redis satisfies never;
  }
}

function insideRows({ version, depths, processes, accounts, deadLetters }: Inside): string[][] {
  const { running, scheduled, waitingForSlot, parked, workers, oldestScheduledMs } = depths;
  const oldest = oldestScheduledMs === null ? "" : `; the oldest for ${span(oldestScheduledMs)}`;
  const dead = `${count(deadLetters.inbound, "message")} and ${count(deadLetters.outbound, "delivery", "deliveries")}`;
  return [
    ["redis", `answers, version ${oneLine(version)}`],
    ["processes", `${processes.length === 0 ? "none" : processes.map(processText).join(", ")}`],
    ["workers", String(workers)],
    [
      "sessions",
      `${running} running, ${scheduled - waitingForSlot} ready, ${waitingForSlot} waiting for a slot, ${parked} parked`,
    ],
    ["waiting", `${count(scheduled, "session")}${oldest}`],
    ...accounts.map((each) => [`outbox ${oneLine(each.account)}`, accountText(each)]),
    ["given up", dead],
  ];
}

function processText({ pid, isHere, isWorker }: LiveProcess): string {
  const notes = [...(isWorker ? ["worker"] : []), ...(isHere ? [] : ["another host"])];
  return `pid ${pid}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`;
}

function accountText({ waiting, oldestMs, isOwned }: AccountView): string {
  const oldest = oldestMs === null ? "" : `, the oldest for ${span(oldestMs)}`;
  return `${waiting} waiting${oldest}; ${isOwned ? "owned by a running process" : "nobody delivers now"}`;
}
