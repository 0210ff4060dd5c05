/**
 * Loads the configuration: the file over the defaults, `${NAME}` replaced, checked once, frozen. The only code that reads
 * `process.env`. Invariant: what it returns is complete and valid, and what it throws holds no value of a setting.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { parseEnv } from "node:util";
import JSON5 from "json5";
import { NanogateError } from "../errors.js";
import type { Fault } from "../faults.js";
import { parseFault } from "./fault.js";
import { ollamaUrl } from "./ollama.js";
import { type Origin, originsOf } from "./origins.js";
import { configFileIn, type Environment, homeFolder, redisFolderIn, resolvePath } from "./paths.js";
import { configInvalid, schemaProblems } from "./problems.js";
import { type Config, configSchema, crossCheck, defaultConfig, type FieldProblem } from "./schema.js";
import { secretsIn } from "./secrets.js";
import { readToken } from "./token.js";
import { deepFreeze, fillTemplates, isBranch, mergeTrees, unknownKeys } from "./tree.js";

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** What a command was given. Everything may be left out. */
export interface LoadRequest {
  /** The file of `-c`. */
  file?: string | undefined;
  /** Options that stand above the file, already of the right type. `workspace` is meant from `cwd`. */
  workspace?: string | undefined;
  host?: string | undefined;
  port?: number | undefined;
  /** The process' own when left out. */
  env?: Environment | undefined;
  cwd?: string | undefined;
}

/** The configuration and what was learned while loading it; frozen all the way down. */
export interface LoadedConfig {
  readonly config: Config;
  /** Values that must never be printed. */
  readonly secrets: readonly string[];
  /** Sentences for the operator: unknown keys, a weak token. */
  readonly warnings: readonly string[];
  readonly home: string;
  /** Folder of the embedded Redis. */
  readonly redisFolder: string;
  /** Folder of the files that people sent, and that of messages that could not be stored yet. */
  readonly mediaFolder: string;
  readonly spoolFolder: string;
  /** The file that was read; null when there was none. */
  readonly file: string | null;
  /** Where each setting comes from, by its path with dots. */
  readonly origins: Readonly<Record<string, Origin>>;
  readonly logLevel: LogLevel;
  readonly fault: Fault | null;
  /** Where an Ollama may be, for `auto`; null when OLLAMA_HOST is not understood. */
  readonly ollamaUrl: string | null;
}

/** Loads and checks everything. Throws `CONFIG_UNREADABLE` or `CONFIG_INVALID`. */
export async function loadConfig(request: LoadRequest = {}): Promise<LoadedConfig> {
  const cwd = request.cwd ?? process.cwd();
  const env = await withEnvFile(request.env ?? process.env, cwd);
  const home = homeFolder(env, cwd);
  const { file, written } = await readWritten(request, env, { home, cwd });
  const source = file === null ? "The configuration" : `The configuration ${file}`;

  const { checked, unknown } = check(source, mergeTrees(written, optionsOf(request)), env);
  const environment = readEnvironment(env);
  const base = request.workspace === undefined && file !== null ? path.dirname(file) : cwd;
  const config: Config = {
    ...checked,
    workspace: resolvePath(checked.workspace, { home, base }),
    redis: { ...checked.redis, url: checked.redis.url ?? environment.redisUrl },
    gateway: { ...checked.gateway, token: await tokenOf(checked.gateway.token, env, home) },
  };
  return deepFreeze({
    config,
    secrets: secretsIn(config),
    warnings: [
      ...unknown.map((key) => `The setting ${key} is not known and is ignored.`),
      ...weakToken(config),
      ...(environment.ollamaUrl === null ? ["OLLAMA_HOST is no address, so no Ollama is looked for."] : []),
    ],
    home,
    redisFolder: redisFolderIn(home),
    mediaFolder: path.join(home, "media"),
    spoolFolder: path.join(home, "spool"),
    file,
    origins: originsOf(config, { written, options: optionsOf(request), env }),
    logLevel: environment.logLevel,
    fault: environment.fault,
    ollamaUrl: environment.ollamaUrl,
  });
}

function optionsOf(request: LoadRequest): unknown {
  return { workspace: request.workspace, gateway: { host: request.host, port: request.port } };
}

async function readText(file: string, absent: readonly string[] = ["ENOENT"]): Promise<string | null> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && absent.includes(String(cause.code))) return null;
    throw new NanogateError("CONFIG_UNREADABLE", `The file ${file} cannot be read.`, { cause });
  }
}

async function withEnvFile(env: Environment, cwd: string): Promise<Environment> {
  // A folder of that name is another program's habit and none of ours.
  const text = await readText(path.join(cwd, ".env"), ["ENOENT", "EISDIR"]);
  return text === null ? env : { ...parseEnv(text), ...env };
}

/** The file that would be read, whether or not it exists; nothing in it matters. Throws `CONFIG_UNREADABLE`. */
export async function locateConfig(request: LoadRequest = {}): Promise<string> {
  const cwd = request.cwd ?? process.cwd();
  const env = await withEnvFile(request.env ?? process.env, cwd);
  return locate(request, env, { home: homeFolder(env, cwd), cwd }).file;
}

function locate(request: LoadRequest, env: Environment, from: { home: string; cwd: string }) {
  const named = request.file ?? (env.NANOGATE_CONFIG?.trim() || null);
  const file = named === null ? configFileIn(from.home) : resolvePath(named, { home: from.home, base: from.cwd });
  return { file, named };
}

async function readWritten(request: LoadRequest, env: Environment, from: { home: string; cwd: string }) {
  const { file, named } = locate(request, env, from);
  const text = await readText(file);
  if (text === null) {
    if (named === null) return { file: null, written: {} };
    throw new NanogateError("CONFIG_UNREADABLE", `The configuration ${file} does not exist.`);
  }
  return { file, written: parseFile(file, text) };
}

function parseFile(file: string, text: string): unknown {
  const tree = parseJson5(file, text);
  if (!isBranch(tree)) throw configInvalid(`The configuration ${file}`, tree, [{ path: [], allowed: "an object" }]);
  const { $schema: _forEditors, ...settings } = { $schema: null, ...tree };
  return settings;
}

function parseJson5(file: string, text: string): unknown {
  try {
    return JSON5.parse(text);
  } catch (error) {
    // The parser's message quotes the text, which may be a secret; the place is enough.
    const place =
      error instanceof Error && "lineNumber" in error && "columnNumber" in error
        ? ` (line ${String(error.lineNumber)}, column ${String(error.columnNumber)})`
        : "";
    throw new NanogateError("CONFIG_UNREADABLE", `The configuration ${file} is not JSON5${place}.`);
  }
}

function check(source: string, written: unknown, env: Environment): { checked: Config; unknown: string[] } {
  const defaults = defaultConfig();
  const filled = fillTemplates(mergeTrees(defaults, written), defaults, env);
  const missing: FieldProblem[] = filled.missing.map(({ path: at, variable }) => ({
    path: at,
    found: `a template whose variable ${variable} is not set`,
    allowed: "a text, or a template of variables that are set",
  }));
  const parsed = configSchema.safeParse(filled.tree);
  // A field whose variable is missing is already named; what the gap looks like to the schema is no second mistake.
  const named = new Set(missing.map(({ path: at }) => at.join(".")));
  const wrong = parsed.success
    ? crossCheck(parsed.data)
    : schemaProblems(parsed.error).filter(({ path: at }) => !named.has(at.map(String).join(".")));
  const problems = [...missing, ...wrong];
  if (!parsed.success || problems.length > 0) throw configInvalid(source, filled.tree, problems);
  return { checked: parsed.data, unknown: unknownKeys(filled.tree, parsed.data) };
}

type FromEnvironment = Pick<LoadedConfig, "logLevel" | "fault" | "ollamaUrl"> & { redisUrl: string | null };

function readEnvironment(env: Environment): FromEnvironment {
  const url = configSchema.shape.redis.unwrap().shape.url.safeParse(env.REDIS_URL?.trim() || null);
  const level = env.LOG_LEVEL?.trim().toLowerCase() || "info";
  const logLevel = LOG_LEVELS.find((known) => known === level);
  const problems: FieldProblem[] = [];
  if (!url.success)
    problems.push(...schemaProblems(url.error).map(({ allowed }) => ({ path: ["REDIS_URL"], allowed })));
  if (logLevel === undefined) problems.push({ path: ["LOG_LEVEL"], allowed: LOG_LEVELS.join(", ") });
  if (!url.success || logLevel === undefined) throw configInvalid("The environment", env, problems);
  const fault = env.NANOGATE_FAULT ? parseFault(env.NANOGATE_FAULT) : null;
  return { redisUrl: url.data, logLevel, fault, ollamaUrl: ollamaUrl(env.OLLAMA_HOST ?? "") };
}

async function tokenOf(written: string | null, env: Environment, home: string): Promise<string | null> {
  return written === "auto" ? env.NANOGATE_TOKEN?.trim() || (await readToken(home)) : written;
}

function weakToken(config: Config): string[] {
  const { token } = config.gateway;
  return token !== null && token.length < 16
    ? ["The gateway token has less than 16 characters and can be guessed."]
    : [];
}
