/** What every test of the agent room stands on: one Redis a file, a workspace a test, and fixtures that are closed. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { z } from "zod";
import type { Provider } from "../../src/agent/providers/provider.js";
import type { Tool, ToolContext, ToolResult } from "../../src/agent/tools/tool.js";
import { AgentFixture, type AgentOptions } from "../support/agent-fixture.js";
import { TestRedis } from "../support/redis-server.js";

export interface AgentStage {
  readonly redis: TestRedis;
  readonly folder: string;
  /** Another process; on the same sessions when given the prefix of a former one. */
  open(provider: Provider, options?: Partial<AgentOptions>): Promise<AgentFixture>;
}

/** Registers the hooks of a test file and gives its stage. */
export function agentStage(): AgentStage {
  const parts: { redis: TestRedis | null; folder: string; opened: AgentFixture[] } = {
    redis: null,
    folder: "",
    opened: [],
  };
  const redis = () => {
    if (parts.redis === null) throw new Error("the stage is not open yet");
    return parts.redis;
  };
  beforeAll(async () => {
    parts.redis = await TestRedis.start();
  });
  afterAll(() => redis().stop());
  beforeEach(async () => {
    parts.folder = await mkdtemp(path.join(tmpdir(), "ng-agent-"));
  });
  afterEach(async () => {
    for (const each of parts.opened.splice(0)) await each.close();
    await rm(parts.folder, { recursive: true, force: true });
  });
  return {
    get redis() {
      return redis();
    },
    get folder() {
      return parts.folder;
    },
    async open(provider, options = {}) {
      const opened = await AgentFixture.open({ address: redis().address, folder: parts.folder, provider, ...options });
      parts.opened.push(opened);
      return opened;
    },
  };
}

/** A tool `note {id}` that keeps what it was run with; `act` decides what it does. */
export function noteTool(ran: string[], act?: (id: string, context: ToolContext) => Promise<ToolResult>) {
  const tool: Tool<{ id: string }> = {
    name: "note",
    description: "notes",
    input: z.strictObject({ id: z.string() }),
    isReadOnly: false,
    run: async ({ id }, context) => {
      ran.push(id);
      return act === undefined ? { type: "done", text: `noted ${id}`, isError: false } : act(id, context);
    },
  };
  return () => [tool];
}

/** Waits for the abort and gives its reason: what a provider or a tool does that heeds its signal. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
