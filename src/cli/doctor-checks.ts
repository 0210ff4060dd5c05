/**
 * The checks of `nanogate doctor`: each carries out what the start of a gateway carries out, and gives a finding in the
 * place of the failure. It prints nothing. Invariant: what a check had to take or start is given back when it returns.
 */
import { createProviders } from "../agent/providers/registry.js";
import type { LoadedConfig } from "../config/load.js";
import { ERROR_ADVICE, NanogateError } from "../errors.js";
import { settleModel } from "../gateway-models.js";
import { packageVersion } from "../gateway-version.js";
import { assertBindAllowed, isLoopbackHost } from "../http/bind.js";
import { createHttpServer } from "../http/server.js";
import { mayEvict } from "../redis/server-facts.js";
import type { LiveProcess } from "../redis/view.js";
import { openWorkspace, type Workspace } from "../workspace/workspace.js";
import { lookForGateway } from "./gateway-look.js";
import type { Opened } from "./open.js";
import { openRedisView } from "./open-redis.js";

export type Finding = { check: string } & (
  | { state: "ok"; found: string }
  | { state: "warning" | "problem"; found: string; advice: string }
);

/** A failure as a finding. Only what is meant for people is told; anything else is a fault of ours and thrown. */
export function problem(check: string, error: unknown): Finding {
  if (!(error instanceof NanogateError)) throw error;
  return { check, state: "problem", found: error.message, advice: error.advice };
}

/** Whether the gateway may listen where it shall. */
export function checkAddress({ host, token }: LoadedConfig["config"]["gateway"]): Finding {
  const check = "access";
  try {
    assertBindAllowed({ host, token });
    const who = token === null ? "only this machine reaches it, so no token is needed" : "a token is set";
    return { check, state: "ok", found: `${host}: ${who}` };
  } catch (error) {
    return problem(check, error);
  }
}

/** Opens the workspace, as the start does. */
export async function checkWorkspace(folder: string): Promise<{ finding: Finding; workspace: Workspace | null }> {
  const check = "workspace";
  try {
    const workspace = await openWorkspace(folder);
    const { root, isNetworkFileSystem } = workspace;
    if (!isNetworkFileSystem) return { finding: { check, state: "ok", found: `${root} is writable` }, workspace };
    const found = `${root} lies on a network file system`;
    return { finding: { check, state: "warning", found, advice: "Run all its workers on one host." }, workspace };
  } catch (error) {
    return { finding: problem(check, error), workspace: null };
  }
}

/** Reaches Redis, as the start does; an embedded server is started for it and left again. */
export async function checkRedis(
  opened: Opened,
  { id }: Workspace,
): Promise<{ finding: Finding; processes: LiveProcess[] | null }> {
  const check = "redis";
  const kind = opened.loaded.config.redis.url === null ? "the embedded server" : "the server";
  try {
    return await openRedisView(opened, id, async (view) => {
      const { facts } = view;
      const found = `${kind} works, version ${facts.version}`;
      const advice = "Set maxmemory-policy to noeviction, or accepted messages can vanish when its memory is full.";
      const finding: Finding = mayEvict(facts)
        ? { check, state: "warning", found: `${found}, but may evict keys (${facts.policy})`, advice }
        : { check, state: "ok", found };
      return { finding, processes: await view.processes() };
    });
  } catch (error) {
    return { finding: problem(check, error), processes: null };
  }
}

/** Takes the port for a moment, unless a gateway of this workspace has it already. */
export async function checkPort(
  { loaded, logger }: Opened,
  processes: readonly LiveProcess[] | null,
): Promise<Finding> {
  const check = "port";
  const { host, port } = loaded.config.gateway;
  const look = await lookForGateway({ host, port });
  if (look.state === "gateway") return portOfGateway(port, look.pid, processes);
  const version = await packageVersion();
  const readiness = async () => [];
  const nothing = { readiness, metrics: null, client: null };
  const server = await createHttpServer({ host, port, role: "doctor", version, logger, ...nothing });
  try {
    await server.listen();
    return { check, state: "ok", found: port === 0 ? "any free port is taken" : `${port} is free` };
  } catch (error) {
    return problem(check, error);
  } finally {
    await server.close(1000);
  }
}

/** Without Redis nobody knows whose gateway it is. */
function portOfGateway(port: number, pid: number, processes: readonly LiveProcess[] | null): Finding {
  const check = "port";
  const advice = ERROR_ADVICE.PORT_TAKEN;
  if (processes === null)
    return { check, state: "warning", found: `${port} is taken by a gateway (pid ${pid}), perhaps this one`, advice };
  if (processes.some((each) => each.isHere && each.pid === pid))
    return { check, state: "ok", found: `${port} is taken by this workspace's own gateway (pid ${pid})` };
  const found = `${port} is taken by a gateway of another workspace (pid ${pid})`;
  return { check, state: "problem", found, advice };
}

/** Resolves the model and looks for its key; the provider is not asked. */
export async function checkModel(opened: Opened): Promise<Finding> {
  const check = "model";
  const { agent, providers } = (await settleModel(opened)).config;
  try {
    const { label } = createProviders({ ...agent, providers }).resolve();
    const advice = ERROR_ADVICE.PROVIDER_NO_KEY;
    if (label === "demo" && agent.model !== "demo")
      return { check, state: "warning", found: "no provider has a key, so the built-in demo model answers", advice };
    const slice = providers[label.split("/")[0] ?? ""];
    if (slice === undefined || slice.apiKey !== null || isLocal(slice.baseUrl))
      return { check, state: "ok", found: label === "demo" ? "demo, which needs no key" : label };
    return { check, state: "problem", found: `${label} has no API key`, advice };
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error)) throw error;
    return { check, state: "problem", found: error.message, advice: ERROR_ADVICE.PROVIDER_MODEL_UNKNOWN };
  }
}

function isLocal(baseUrl: string | null): boolean {
  if (baseUrl === null || !URL.canParse(baseUrl)) return false;
  const { hostname } = new URL(baseUrl);
  return isLoopbackHost(hostname) || hostname.endsWith(".localhost");
}
