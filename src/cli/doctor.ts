/**
 * `nanogate doctor`: carries out the checks of a start one after the other and says of each what it found and what to do.
 * It mends nothing and calls no model. Invariant: it ends with 1 exactly when a start would fail or nothing would be
 * answered; a warning alone is no failure.
 */
import { NanogateError } from "../errors.js";
import { redactText } from "../logger.js";
import {
  checkAddress,
  checkModel,
  checkPort,
  checkRedis,
  checkWorkspace,
  type Finding,
  problem,
} from "./doctor-checks.js";
import { type Opened, openConfig } from "./open.js";
import type { AnswerOptions } from "./options.js";
import { oneLine, plain, say, sayJson } from "./output.js";

export async function doctorCommand(options: AnswerOptions): Promise<number> {
  const findings: Finding[] = [];
  for await (const finding of examine(options)) {
    findings.push(finding);
    if (options.json !== true) tell(finding);
  }
  const isWell = findings.every(({ state }) => state !== "problem");
  if (options.json === true) sayJson({ ok: isWell, findings });
  else if (isWell) say("Nothing keeps the gateway from running.");
  return isWell ? 0 : 1;
}

async function* examine(options: AnswerOptions): AsyncGenerator<Finding> {
  const opened = await openConfig(options).catch((error: unknown) => {
    if (error instanceof NanogateError) return error;
    throw error;
  });
  // Without a configuration there is nothing to check.
  if (opened instanceof NanogateError) yield problem("config", opened);
  else yield* examineWith(opened);
}

async function* examineWith(opened: Opened): AsyncGenerator<Finding> {
  const { config, file, warnings } = opened.loaded;
  yield { check: "config", state: "ok", found: file === null ? "no file; the defaults are used" : `${file} is valid` };
  for (const warning of warnings)
    yield { check: "config", state: "warning", found: warning, advice: "`nanogate config show` lists the settings." };
  yield checkAddress(config.gateway);
  const { finding, workspace } = await checkWorkspace(config.workspace);
  yield finding;
  const redis = workspace === null ? null : await checkRedis(opened, workspace);
  if (redis !== null) yield redis.finding;
  yield await checkPort(opened, redis?.processes ?? null);
  yield await checkModel(opened);
}

const STATE_WIDTH = "warning".length;
const CHECK_WIDTH = "workspace".length;

function tell(finding: Finding): void {
  const { state, check } = finding;
  const indent = " ".repeat(STATE_WIDTH + CHECK_WIDTH + 4);
  const found = plain(redactText(finding.found)).replaceAll("\n", `\n${indent}`);
  say(`${state.padEnd(STATE_WIDTH)}  ${check.padEnd(CHECK_WIDTH)}  ${found}`);
  if (finding.state !== "ok") say(`${indent}→ ${oneLine(finding.advice)}`);
}
