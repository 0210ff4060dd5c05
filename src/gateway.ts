/**
 * The composition root: builds every part and hands it in, starts them in order, and stops them in the mirror of that
 * order. It holds no logic of its own. Invariant: intake stops first and Redis last; every stopping step runs, whatever the
 * one before it did, and each is bounded.
 */
import { DirectCalls } from "./agent/direct.js";
import type { AgentLoop } from "./agent/loop.js";
import type { Bus } from "./bus/bus.js";
import { UpkeepLoop } from "./bus/upkeep-loop.js";
import type { ChannelManager } from "./channels/manager.js";
import type { UpgradeHandler } from "./channels/registry.js";
import { timingOf } from "./config/timing.js";
import { createFaultHook, noFaults } from "./faults.js";
import { assembleAgent } from "./gateway-agent.js";
import { assembleBus, type BusParts } from "./gateway-bus.js";
import { assembleChannels, type ChannelAssembly, startWithin } from "./gateway-channels.js";
import { watchEventLoop } from "./gateway-lag.js";
import { createMetricsBook, type MetricsBook } from "./gateway-metrics.js";
import { modelLabelOf, settleModel } from "./gateway-models.js";
import type { GatewayOptions } from "./gateway-options.js";
import { type Readiness, readinessOf } from "./gateway-readiness.js";
import { samplerOf } from "./gateway-sample.js";
import { Stopping } from "./gateway-stopping.js";
import { packageVersion } from "./gateway-version.js";
import { issuerOf, MAX_TOKEN_REQUESTS_PER_MINUTE } from "./http/auth.js";
import { assertBindAllowed } from "./http/bind.js";
import { createHttpServer, type HttpServer } from "./http/server.js";
import type { WebhookHandler } from "./http/webhooks.js";
import { keepSweeping } from "./media/keeper.js";
import { noMetrics } from "./metrics.js";
import { liveAddressOf } from "./redis/envelope.js";
import type { SessionManager } from "./session/manager.js";
import { openWorkspace, type Workspace } from "./workspace/workspace.js";

/** A channel that takes longer to start holds up no other; it goes on, and `/readyz` says how it is. */
const START_LIMIT_MS = 10_000;

/** A running gateway. */
export interface Gateway {
  /** Port that was taken; null for a role without a server. */
  readonly port: number | null;
  readonly workspace: Workspace;
  readonly bus: Bus;
  readonly direct: DirectCalls;
  readonly sessions: SessionManager;
  /** Stops in order, within `gateway.drainMs` and a few seconds. Idempotent. */
  stop(): Promise<void>;
}

/** What runs so far; filled while the start goes on. */
interface Running extends Readiness {
  channels: ChannelManager | null;
  upgrade: UpgradeHandler | null;
  /** Channels whose platform brings its updates, by name. */
  webhooks: ReadonlyMap<string, WebhookHandler>;
  /** Accounts whose outbox this process serves. */
  accounts: readonly string[];
}

/** Starts a gateway. Throws what must be told to the operator; nothing is left running then. */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const stopping = new Stopping(options.logger);
  try {
    return await start(options, stopping);
  } catch (error) {
    await stopping.run();
    throw error;
  }
}

async function start(given: GatewayOptions, stopping: Stopping): Promise<Gateway> {
  const options = { ...given, loaded: await settleModel(given) };
  const { loaded, role, logger } = options;
  const { config, fault } = loaded;
  const faults = fault === null ? noFaults : createFaultHook(fault);
  const running: Running = {
    stack: null,
    upkeep: null,
    worker: null,
    channels: null,
    upgrade: null,
    webhooks: new Map(),
    accounts: [],
  };
  for (const warning of loaded.warnings) logger.warn(warning);

  // 1. What may be wrong from the start.
  if (role !== "direct") assertBindAllowed({ host: config.gateway.host, token: config.gateway.token });
  const workspace = await openWorkspace(config.workspace);

  // 2. The port, so that health can be asked while Redis is waited for.
  const book = role === "direct" ? null : createMetricsBook(logger);
  const metrics = book?.metrics ?? noMetrics;
  const http = book === null ? null : await startHttp({ options, running, stopping, book });
  stopping.push("lag", watchEventLoop({ limitMs: config.gateway.leaseMs, logger, metrics }));

  // 3. Redis and the bus.
  const parts = await assembleBus({ ...options, workspaceId: workspace.id, faults, metrics });
  running.stack = parts.stack;
  stopping.push("redis", () => parts.close());
  await parts.lock.start();
  stopping.push("leases", () => parts.lock.stop());

  if (workspace.isNetworkFileSystem && role !== "channels") {
    await parts.stack.hostLease.take(() => process.kill(process.pid, "SIGTERM"));
    stopping.push("host", () => parts.stack.hostLease.release());
  }

  // 4. Sessions and the agent.
  const agent = await assembleAgent({ loaded, logger, faults, metrics, workspace, parts });
  stopping.push("sessions", () => agent.sessions.flushAll());
  if (role !== "direct") stopping.push("files", keepSweeping(agent.media, logger));
  const { bus, stack } = parts;
  const unhint = await stack.signals.onHint((key) => void agent.loop.onHint(key));
  stopping.push("hints", unhint);

  // 5. Upkeep, in every process.
  const timing = timingOf(config.gateway.leaseMs);
  const upkeep = new UpkeepLoop({
    bus,
    upkeep: stack.upkeep,
    ready: stack.ready,
    measurePressure: () => stack.pressure.measure(),
    reapMs: timing.reapEveryMs,
    sweepMs: timing.sweepAfterMs / 3,
    logger,
  });
  upkeep.start();
  running.upkeep = upkeep;
  stopping.push("upkeep", () => upkeep.stop());

  // 6. Work, then the doors.
  stopping.push("channels", () => running.channels?.stop());
  if (role === "all" || role === "worker") await startWorker({ options, parts, loop: agent.loop, running, stopping });
  if (role === "all" || role === "channels")
    await startChannels({ options, parts, ...agent, faults, metrics, running, stopping });
  logger.info(
    { role, port: http?.port, redis: stack.client.label, workspace: workspace.root, model: agent.modelLabel },
    "ready",
  );

  const { results, signals } = stack;
  const direct = new DirectCalls({
    bus,
    ingress: agent.ingress,
    loop: agent.loop,
    results,
    signals,
    upkeep: stack.upkeep,
    liveAddressOf: (replyKey) =>
      liveAddressOf({ via: "result", replyKey, account: "", channel: "", chatId: "", isStreaming: true }),
  });
  return { port: http?.port ?? null, workspace, bus, direct, sessions: agent.sessions, stop: () => stopping.run() };
}

async function startHttp(work: {
  options: GatewayOptions;
  running: Running;
  stopping: Stopping;
  book: MetricsBook;
}): Promise<{ port: number }> {
  const { options, running, stopping, book } = work;
  const { loaded, role, logger } = options;
  const { host, port, token } = loaded.config.gateway;
  const sample = samplerOf(() => running);
  const version = await packageVersion();
  const model = modelLabelOf(loaded.config);
  const client = {
    upgrade: ((request, socket, head) => {
      if (running.upgrade === null)
        socket.end("HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\r\n");
      else running.upgrade(request, socket, head);
    }) satisfies UpgradeHandler,
    page: { version, model, isDemo: model === "demo" },
    auth: { token, issue: issuerOf(() => running.stack), maxPerMinute: MAX_TOKEN_REQUESTS_PER_MINUTE },
    webhook: (channel: string) => running.webhooks.get(channel) ?? null,
  };
  const server: HttpServer = await createHttpServer({
    host,
    port,
    role,
    version,
    logger,
    readiness: () => readinessOf(running, role, timingOf(loaded.config.gateway.leaseMs).stuckAfterMs),
    metrics: { contentType: book.contentType, text: () => book.text(sample), token },
    client: role === "worker" ? null : client,
  });
  stopping.push("http", () => server.close(2000));
  return server.listen();
}

async function startWorker(work: {
  options: GatewayOptions;
  parts: BusParts;
  loop: AgentLoop;
  running: Running;
  stopping: Stopping;
}): Promise<void> {
  const { options, parts, loop, running, stopping } = work;
  const { concurrency, drainMs } = options.loaded.config.gateway;
  const consumer = await parts.ready.consume(concurrency, (key, wake) => loop.run(key, wake));
  running.worker = { consumer, isBusy: () => loop.size >= concurrency };
  stopping.push("worker", async () => {
    // Nothing new is begun; what runs may end by itself for `drainMs`, then it is handed back.
    loop.leave();
    const timer = setTimeout(() => loop.drain(), drainMs);
    await consumer.close();
    clearTimeout(timer);
  });
}

async function startChannels(work: ChannelAssembly & { running: Running; stopping: Stopping }): Promise<void> {
  const { running, stopping } = work;
  const { manager, upgrade, webhooks, accounts } = await assembleChannels(work);
  running.channels = manager;
  await startWithin(manager, START_LIMIT_MS);
  running.upgrade = upgrade;
  running.webhooks = webhooks;
  // The first step of stopping; the channels themselves stop when what they took in is answered.
  stopping.push("intake", () => {
    running.upgrade = null;
    running.webhooks = new Map();
    manager.refuseNew();
  });
  running.accounts = accounts;
}
