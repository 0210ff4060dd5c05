/**
 * The runner, the OpenAI-compatible provider with retries, and the file tools together, against an independent model
 * peer and a real folder.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LLMock } from "@copilotkit/aimock";
import { expect, test } from "vitest";
import { sleepMs } from "../../src/agent/providers/abort.js";
import { createProviders } from "../../src/agent/providers/registry.js";
import { withRetries } from "../../src/agent/providers/retry.js";
import { FileReads } from "../../src/agent/tools/files.js";
import { createWorkspaceTools } from "../../src/agent/tools/workspace-tools.js";
import { brief, inputFor, quietLogger, run } from "./run-helpers.js";

test("a refused call, a tool that writes a file, and a streamed answer", async () => {
  const root = await mkdtemp(join(tmpdir(), "nanogate-run-"));
  const mock = new LLMock({ port: 0, strict: true });
  await mock.start();
  try {
    mock.on(
      { hasToolResult: false },
      { toolCalls: [{ name: "write_file", arguments: '{"path":"note.txt","content":"hi"}', id: "w1" }] },
    );
    mock.on({ toolResultContains: "Created note.txt" }, { content: "The note is written." }, { chunkSize: 5 });
    mock.nextRequestError(503, { message: "overloaded" });
    const { provider, model } = createProviders({
      model: "local/m",
      providers: { local: { kind: "openai", apiKey: null, baseUrl: `${mock.url}/v1` } },
      requestTimeoutMs: 5000,
      streamIdleTimeoutMs: 5000,
    }).resolve();
    const retrying = withRetries(provider, { delaysMs: [5], logger: quietLogger(), sleep: sleepMs });
    const resolve = async (path: string) => join(root, path);
    const guard = { resolveInside: resolve, resolveReadable: resolve };
    const tools = createWorkspaceTools({ guard, reads: new FileReads() });
    const { events, result } = await run(inputFor(retrying, { model, tools }));
    expect(brief(events.filter((event) => event.type !== "text"))).toEqual([
      '1 calls ""',
      "1 start w1",
      "1 result w1",
      '2 final "The note is written."',
    ]);
    expect(result.stop).toBe("completed");
    expect(await readFile(join(root, "note.txt"), "utf8")).toBe("hi");
    expect(mock.getRequests()).toHaveLength(3);
  } finally {
    await mock.stop();
    await rm(root, { recursive: true, force: true });
  }
});
