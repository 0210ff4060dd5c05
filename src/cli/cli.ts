/**
 * The command line: every command with its options, and how failures are told. A command is a file of this folder and one
 * entry here. Invariant: a failure is one sentence of what happened and one of what to do, on standard error; a stack is
 * in the log only.
 */
import { Command, CommanderError, InvalidArgumentError } from "commander";
import { ERROR_ADVICE, type ErrorCode, NanogateError } from "../errors.js";
import { packageVersion } from "../gateway-version.js";
import { redactText } from "../logger.js";
import { agentCommand } from "./agent.js";
import { gatewayCommand } from "./gateway.js";

const CONFIG_CODES: ReadonlySet<ErrorCode> = new Set([
  "CONFIG_INVALID",
  "CONFIG_UNREADABLE",
  "BIND_NEEDS_TOKEN",
  "WORKSPACE_UNUSABLE",
]);

function port(text: string): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number > 65_535) throw new InvalidArgumentError("It is a whole number from 0 to 65535.");
  return number;
}

function withCommon(command: Command): Command {
  return command
    .option("-c, --config <file>", "configuration file")
    .option("-w, --workspace <dir>", "workspace folder");
}

function build(version: string, done: (code: number) => void): Command {
  const program = new Command("nanogate")
    .description("A chat gateway: platforms and clients talk to one agent over a Redis bus.")
    .version(version)
    .exitOverride();
  withCommon(program.command("gateway"))
    .description("run the daemon")
    .addOption(
      program
        .createOption("--role <role>", "what this process does")
        .choices(["all", "channels", "worker"])
        .default("all"),
    )
    .option("--host <host>", "address to listen on")
    .option("--port <port>", "port to listen on", port)
    .option("--ensure-token", "make a token in the home folder where none is configured")
    .action(async (options) => done(await gatewayCommand(options)));
  withCommon(program.command("agent"))
    .description("talk to the agent: one turn with -m, else interactive")
    .option("-m, --message <text>", "say this, print the answer, exit")
    .option("-s, --session <key>", "session key", "cli:direct")
    .option("--json", "print the result as JSON (with -m)")
    .action(async (options) => done(await agentCommand(options)));
  return program;
}

function codeOf(error: NanogateError): number {
  if (error.code === "USAGE") return 2;
  return CONFIG_CODES.has(error.code) ? 78 : 1;
}

/** Runs a command line; returns the exit code. */
export async function runCli(args: readonly string[]): Promise<number> {
  let code = 0;
  const program = build(await packageVersion(), (result) => {
    code = result;
  });
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
