/**
 * Runs a command line and tells its failures. The commands themselves stand in `program.ts`. Invariant: a failure is one
 * sentence of what happened and one of what to do, on standard error; a stack is in the log only, unless the fault is ours.
 */
import { CommanderError } from "commander";
import { ERROR_ADVICE, type ErrorCode, NanogateError } from "../errors.js";
import { packageVersion } from "../gateway-version.js";
import { redactText } from "../logger.js";
import { buildProgram } from "./program.js";

const CONFIG_CODES: ReadonlySet<ErrorCode> = new Set([
  "CONFIG_INVALID",
  "CONFIG_UNREADABLE",
  "BIND_NEEDS_TOKEN",
  "WORKSPACE_UNUSABLE",
]);

function codeOf(error: NanogateError): number {
  if (error.code === "USAGE") return 2;
  return CONFIG_CODES.has(error.code) ? 78 : 1;
}

/** Runs a command line; returns the exit code. */
export async function runCli(args: readonly string[]): Promise<number> {
  let code = 0;
  const program = buildProgram(await packageVersion(), (result) => {
    code = result;
  });
  endWithReader();
  try {
    await program.parseAsync([...args], { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof NanogateError) {
      console.error(`${redactText(error.message)}\n${ERROR_ADVICE[error.code]} [${error.code}]`);
      return codeOf(error);
    }
    console.error(redactText(error instanceof Error ? (error.stack ?? error.message) : String(error)));
    return 1;
  }
}

/** Whoever reads our output may stop early, as `head` does: that is no failure, and nothing is left to say. */
function endWithReader(): void {
  process.stdout.on("error", (error) => {
    if ("code" in error && error.code === "EPIPE") process.exit(0);
    throw error;
  });
}
