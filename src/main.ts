#!/usr/bin/env node
/**
 * The `nanogate` command: reads the command line, dispatches to a file of `cli/`, and ends with the exit code of the
 * outcome (0 ok, 1 failed, 2 wrong usage, 78 wrong configuration). It carries nothing out itself.
 */
import { runCli } from "./cli/cli.js";

process.exitCode = await runCli(process.argv.slice(2));
