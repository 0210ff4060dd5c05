/**
 * Half of the composition root: sessions, model, tools, and the loop that brings them together. It starts nothing.
 * Invariant: an agent assembled here never needs to know where its messages come from.
 */
import { createDescribe } from "./agent/commands/describe.js";
import { createPairingCommand } from "./agent/commands/pairing.js";
import { createContextBuilder } from "./agent/context.js";
import { Ingress } from "./agent/ingress.js";
import { AgentLoop } from "./agent/loop.js";
import { FileReads } from "./agent/tools/files.js";
import { withToolMetrics } from "./agent/tools/measured.js";
import { createWorkspaceTools } from "./agent/tools/workspace-tools.js";
import { hasOwners } from "./channels/policy.js";
import type { LoadedConfig } from "./config/load.js";
import type { FaultHook } from "./faults.js";
import type { BusParts } from "./gateway-bus.js";
import { createPathGuard } from "./gateway-guard.js";
import { assembleMedia } from "./gateway-media.js";
import { assembleModels, labelOf } from "./gateway-models.js";
import { packageVersion } from "./gateway-version.js";
import type { Logger } from "./logger.js";
import type { MediaStore } from "./media/store.js";
import type { Metrics } from "./metrics.js";
import { nodeIo, withFewFlushes } from "./session/io.js";
import { SessionManager } from "./session/manager.js";
import { BOOTSTRAP_FILES, readTemplate, type Workspace } from "./workspace/workspace.js";

/** Sessions whose content is kept in memory. */
const CACHED_SESSIONS = 128;
/** Waits after the first and the second failed try of a message. */
const RETRY_DELAYS_MS = [1000, 5000] as const;

export interface AgentParts {
  sessions: SessionManager;
  loop: AgentLoop;
  ingress: Ingress;
  /** Files that people sent. */
  media: MediaStore;
  /** What a person calls the configured model. */
  modelLabel: string;
}

export interface AgentAssembly {
  loaded: LoadedConfig;
  logger: Logger;
  faults: FaultHook;
  metrics: Metrics;
  workspace: Workspace;
  parts: BusParts;
}

export async function assembleAgent({
  loaded,
  logger,
  faults,
  metrics,
  workspace,
  parts,
}: AgentAssembly): Promise<AgentParts> {
  const { config } = loaded;
  const { agent } = config;
  const { bus, lock, stack } = parts;
  const providers = assembleModels(config, logger, metrics);
  const fileTools = { io: withFewFlushes(nodeIo), faults, logger, clock: Date.now };
  const sessions = new SessionManager({
    folder: workspace.sessions,
    fsync: config.session.fsync,
    cacheSize: CACHED_SESSIONS,
    tools: fileTools,
  });
  const templates = await Promise.all(BOOTSTRAP_FILES.map(async (file) => [file, await readTemplate(file)] as const));
  const { contextWindow, maxOutputTokens } = agent;
  const context = createContextBuilder({
    folder: workspace.root,
    contextWindow,
    maxOutputTokens,
    templates: new Map<string, string>(templates),
    mediaFolder: loaded.mediaFolder,
  });
  const media = assembleMedia(loaded, logger, metrics);
  const guard = createPathGuard({
    workspace,
    mediaFolder: loaded.mediaFolder,
    isRestricted: config.tools.restrictToWorkspace,
  });
  const tools = () =>
    createWorkspaceTools({ guard, reads: new FileReads() }).map((tool) => withToolMetrics(tool, metrics));
  const turn = {
    bus,
    providers,
    context,
    media: media.turn,
    tools,
    settings: agent,
    faults,
    logger,
    metrics,
    nowMs: Date.now,
  };
  const loop = new AgentLoop({ bus, lock, sessions, turn, retryDelaysMs: RETRY_DELAYS_MS, logger });
  const describe = createDescribe({
    version: await packageVersion(),
    modelLabel: () => labelOf(providers),
    sessions,
    upkeep: stack.upkeep,
    uptimeMs: () => process.uptime() * 1000,
  });
  const pairing = createPairingCommand(stack.pairings(hasOwners(config.channels)));
  const ingress = new Ingress({ bus, debounceMs: agent.debounceMs, describe, pairing, logger, metrics });
  return { sessions, loop, ingress, media: media.store, modelLabel: labelOf(providers) };
}
