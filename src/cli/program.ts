/**
 * The command line: every command with its arguments and options, each with one entry. What a command does is in a file of
 * its own; how failures are told is in `cli.ts`. Invariant: a command's file is loaded only when that command runs, so that
 * quick commands stay quick.
 */
import { Command, InvalidArgumentError } from "commander";

/** Told the exit code of the command that ran. */
type Done = (code: number) => void;

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

function withAnswer(command: Command): Command {
  return withCommon(command).option("--json", "print the answer as JSON");
}

/** The whole command line. */
export function buildProgram(version: string, done: Done): Command {
  const program = new Command("nanogate")
    .description("A chat gateway: platforms and clients talk to one agent over a Redis bus.")
    .version(version)
    .exitOverride();
  addRunning(program, done);
  addLooking(program, done);
  addConfig(program.command("config").description("what the settings are and whether they are right"), done);
  addSessions(program.command("sessions").description("conversations: look at them, move them, mend them"), done);
  addPairing(program.command("pairing").description("who waits to talk to a bot, and who may"), done);
  addOutbox(program.command("outbox").description("deliveries that failed for good or ended unknown"), done);
  return program;
}

function addRunning(program: Command, done: Done): void {
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
    .action(async (options) => done(await (await import("./gateway.js")).gatewayCommand(options)));
  withCommon(program.command("agent"))
    .description("talk to the agent: one turn with -m, else interactive")
    .option("-m, --message <text>", "say this, print the answer, exit")
    .option("-s, --session <key>", "session key", "cli:direct")
    .option("--json", "print the result as JSON (with -m)")
    .action(async (options) => done(await (await import("./agent.js")).agentCommand(options)));
}

function addLooking(program: Command, done: Done): void {
  withAnswer(program.command("status"))
    .description("what runs, how much waits")
    .action(async (options) => done(await (await import("./status.js")).statusCommand(options)));
  withAnswer(program.command("doctor"))
    .description("what is wrong and how to mend it")
    .action(async (options) => done(await (await import("./doctor.js")).doctorCommand(options)));
  withAnswer(program.command("token"))
    .description("print the gateway token")
    .action(async (options) => done(await (await import("./token.js")).tokenCommand(options)));
  const channels = program.command("channels").description("who may talk to which channel, and how it is");
  withAnswer(channels.command("status"))
    .description("effective access policy and health of each channel")
    .action(async (options) => done(await (await import("./channels.js")).channelsStatusCommand(options)));
}

function addConfig(config: Command, done: Done): void {
  const load = () => import("./config.js");
  withAnswer(config.command("validate"))
    .description("say whether the configuration is right")
    .action(async (options) => done(await (await load()).configValidateCommand(options)));
  withAnswer(config.command("schema"))
    .description("print the JSON Schema of the file")
    .action(async () => done(await (await load()).configSchemaCommand()));
  withAnswer(config.command("show"))
    .description("print every setting, where it comes from, and no secret")
    .action(async (options) => done(await (await load()).configShowCommand(options)));
  withAnswer(config.command("path"))
    .description("print the path of the configuration file")
    .action(async (options) => done(await (await load()).configPathCommand(options)));
}

function addSessions(sessions: Command, done: Done): void {
  const look = () => import("./sessions.js");
  const change = () => import("./sessions-change.js");
  withAnswer(sessions.command("list"))
    .description("every session, newest first")
    .action(async (options) => done(await (await look()).sessionsListCommand(options)));
  withAnswer(sessions.command("show <key>"))
    .description("a whole session to be read")
    .action(async (key, options) => done(await (await look()).sessionsShowCommand(key, options)));
  withCommon(sessions.command("export <key>"))
    .description("write a session to standard output as JSONL")
    .action(async (key, options) => done(await (await look()).sessionsExportCommand(key, options)));
  withAnswer(sessions.command("import <files...>"))
    .description("read sessions from JSONL files, ours or nanobot's")
    .option("--force", "overwrite sessions that exist")
    .action(async (files, options) => done(await (await change()).sessionsImportCommand(files, options)));
  withAnswer(sessions.command("delete <key>"))
    .description("delete a session")
    .action(async (key, options) => done(await (await change()).sessionsDeleteCommand(key, options)));
  withAnswer(sessions.command("repair <key>"))
    .description("put unusable lines of a session's file aside")
    .action(async (key, options) => done(await (await change()).sessionsRepairCommand(key, options)));
}

function addPairing(pairing: Command, done: Done): void {
  const load = () => import("./pairing.js");
  withAnswer(pairing.command("list"))
    .description("the codes that wait, and the people who are paired")
    .action(async (options) => done(await (await load()).pairingListCommand(options)));
  withAnswer(pairing.command("approve <code>"))
    .description("let in whoever got this code")
    .action(async (code, options) => done(await (await load()).pairingApproveCommand(code, options)));
  withAnswer(pairing.command("deny <code>"))
    .description("send whoever got this code away")
    .action(async (code, options) => done(await (await load()).pairingDenyCommand(code, options)));
  withAnswer(pairing.command("revoke <channel> <user>"))
    .description("take a pairing back")
    .action(async (channel, user, options) => done(await (await load()).pairingRevokeCommand(channel, user, options)));
}

function addOutbox(outbox: Command, done: Done): void {
  const load = () => import("./outbox.js");
  withAnswer(outbox.command("list"))
    .description("the dead letters")
    .action(async (options) => done(await (await load()).outboxListCommand(options)));
  withAnswer(outbox.command("retry <id>"))
    .description("put a dead letter back into its outbox")
    .action(async (id, options) => done(await (await load()).outboxRetryCommand(id, options)));
  withAnswer(outbox.command("drop <id>"))
    .description("forget a dead letter")
    .action(async (id, options) => done(await (await load()).outboxDropCommand(id, options)));
}
