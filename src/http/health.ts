/**
 * `/healthz` and `/readyz`: does the process serve, and can it do its work. What is wrong is found elsewhere and handed
 * in. Invariant: `/readyz` answers within its time limit, and says 200 only when it was told of no problem.
 */
import type { FastifyInstance } from "fastify";

/** One reason for not being ready, with what to do about it. Never a secret: this route asks for no token. */
export interface Problem {
  /** Redis, a consumer, a channel by name … */
  part: string;
  problem: string;
  advice: string;
}

export interface HealthDeps {
  role: string;
  version: string;
  /** What keeps this process from its work; empty when it is ready. */
  readiness: () => Promise<Problem[]>;
  /** Longest wait for `readiness`. */
  readinessLimitMs: number;
}

/** Adds both routes. */
export function addHealthRoutes(app: FastifyInstance, deps: HealthDeps): void {
  const { role, version } = deps;
  app.get("/healthz", async (_request, reply) => {
    reply.header("cache-control", "no-store");
    return { status: "ok", role, version, pid: process.pid, uptimeMs: Math.round(process.uptime() * 1000) };
  });
  app.get("/readyz", async (request, reply) => {
    const problems = await ask(deps, (error) => request.log.error({ err: error }, "readiness could not be found out"));
    const isReady = problems.length === 0;
    reply.code(isReady ? 200 : 503).header("cache-control", "no-store");
    return { status: isReady ? "ready" : "not ready", role, problems };
  });
}

async function ask(deps: HealthDeps, onError: (error: unknown) => void): Promise<Problem[]> {
  let timer: NodeJS.Timeout | undefined;
  const silent = new Promise<Problem[]>((resolve) => {
    const problem = { part: "readiness", problem: "The checks took too long.", advice: "Look at the log; ask again." };
    timer = setTimeout(() => resolve([problem]), deps.readinessLimitMs);
  });
  try {
    return await Promise.race([deps.readiness(), silent]);
  } catch (error) {
    onError(error);
    return [{ part: "readiness", problem: "The checks failed.", advice: "The log of the gateway has the reason." }];
  } finally {
    clearTimeout(timer);
  }
}
