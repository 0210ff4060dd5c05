/**
 * `nanogate config`: what the settings are, where they come from, and whether they are right. It uses the loader that the
 * gateway uses and checks nothing itself. Invariant: no secret is printed, in whatever field it stands.
 */
import { type LoadedConfig, loadConfig, locateConfig } from "../config/load.js";
import { leavesOf, type Origin } from "../config/origins.js";
import { renderJsonSchema } from "../config/schema.js";
import { isSecretKey } from "../config/secrets.js";
import { ERROR_ADVICE, NanogateError } from "../errors.js";
import { redactText } from "../logger.js";
import type { AnswerOptions } from "./options.js";
import { note, oneLine, say, sayJson, sayTable } from "./output.js";

const HIDDEN = "[hidden]";
const WRONG_CONFIG = 78;

const load = ({ config, workspace }: AnswerOptions) => loadConfig({ file: config, workspace });

/** Says whether the configuration is right; 78 when it is not. */
export async function configValidateCommand(options: AnswerOptions): Promise<number> {
  if (options.json !== true) {
    const { file, home, warnings } = await load(options);
    for (const warning of warnings) note(`warning: ${warning}`);
    say(file === null ? `There is no file in ${home}; the defaults are valid.` : `${file} is valid.`);
    return 0;
  }
  try {
    const { file, warnings } = await load(options);
    sayJson({ valid: true, file, warnings });
    return 0;
  } catch (error) {
    if (!(error instanceof NanogateError)) throw error;
    sayJson({ valid: false, code: error.code, problem: redactText(error.message), advice: ERROR_ADVICE[error.code] });
    return WRONG_CONFIG;
  }
}

/** Prints the JSON Schema of the file, for editors. */
export async function configSchemaCommand(): Promise<number> {
  sayJson(renderJsonSchema());
  return 0;
}

/** Prints the path of the file that is read, also when there is none yet. */
export async function configPathCommand(options: AnswerOptions): Promise<number> {
  const file = await locateConfig({ file: options.config });
  if (options.json === true) sayJson({ file });
  else say(file);
  return 0;
}

interface Setting {
  path: string;
  value: unknown;
  from: string;
}

/** Prints every setting with its value and where that comes from. */
export async function configShowCommand(options: AnswerOptions): Promise<number> {
  const loaded = await load(options);
  for (const warning of loaded.warnings) note(`warning: ${warning}`);
  const settings = settingsOf(loaded);
  if (options.json === true) {
    sayJson({ file: loaded.file, home: loaded.home, settings });
    return 0;
  }
  say(`File: ${loaded.file ?? "none"}    Home: ${loaded.home}`);
  say("");
  sayTable(settings.map(({ path, value, from }) => [path, oneLine(JSON.stringify(value)), from]));
  return 0;
}

function settingsOf({ config, origins, secrets }: LoadedConfig): Setting[] {
  return leavesOf(config).map(({ path, value }) => {
    const name = path.join(".");
    return { path: name, value: shown(path.at(-1) ?? "", value, secrets), from: words(origins[name]) };
  });
}

function shown(key: string, value: unknown, secrets: readonly string[]): unknown {
  if (value === null) return null;
  if (isSecretKey(key) && typeof value === "string") return HIDDEN;
  // Lists and texts may hold a password in a URL, or a secret that stands somewhere else too.
  const written = secrets.map((secret) => JSON.stringify(secret).slice(1, -1));
  return JSON.parse(redactText(JSON.stringify(value), written));
}

function words(origin: Origin | undefined): string {
  if (origin === undefined) return "default";
  return origin.from === "environment" ? `environment (${origin.variables.join(", ")})` : origin.from;
}
