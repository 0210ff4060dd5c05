/**
 * Says of every setting where its value comes from, for people who wonder. Pure; it reads neither files nor the
 * environment but what is handed in. Invariant: it names variables and never says a value.
 */
import type { Environment } from "./paths.js";
import { type Config, defaultConfig } from "./schema.js";
import { isBranch, templateVariables, valueAt } from "./tree.js";

/** Where a value comes from; the variables are those that the environment filled in. */
export type Origin =
  | { from: "default" | "file" | "command line" | "token file" }
  | { from: "environment"; variables: readonly string[] };

export interface OriginSources {
  /** What the file says, templates as they stand. */
  written: unknown;
  /** What the command line says. */
  options: unknown;
  env: Environment;
}

type Path = readonly string[];

/** Where each setting of a loaded configuration comes from, by its path with dots. */
export function originsOf(config: Config, sources: OriginSources): Record<string, Origin> {
  const defaults = defaultConfig();
  return Object.fromEntries(
    leavesOf(config).map(({ path, value }) => [path.join("."), originOf(path, value, { ...sources, defaults })]),
  );
}

/** Every setting with its path; lists are settings as a whole, and so are empty objects. */
export function leavesOf(tree: unknown, path: Path = []): Array<{ path: Path; value: unknown }> {
  if (!isBranch(tree) || (Object.keys(tree).length === 0 && path.length > 0)) return [{ path, value: tree }];
  return Object.entries(tree).flatMap(([key, value]) => leavesOf(value, [...path, key]));
}

function originOf(path: Path, value: unknown, from: OriginSources & { defaults: Config }): Origin {
  if (valueAt(from.options, path) !== undefined) return { from: "command line" };
  const written = valueAt(from.written, path);
  const special = outsideTheTree(path, { written, value, env: from.env });
  if (special !== null) return special;
  const text = written ?? valueAt(from.defaults, path);
  const variables = typeof text === "string" && value !== null ? templateVariables(text) : [];
  if (variables.length > 0) return { from: "environment", variables };
  return { from: written === undefined ? "default" : "file" };
}

/** The two values that a variable gives without a template. */
function outsideTheTree(
  path: Path,
  { written, value, env }: { written: unknown; value: unknown; env: Environment },
): Origin | null {
  if (value === null) return null;
  const isOpen = written === undefined || written === null || written === "auto";
  if (!isOpen) return null;
  switch (path.join(".")) {
    case "redis.url":
      return { from: "environment", variables: ["REDIS_URL"] };
    case "gateway.token":
      if (written === null) return null;
      return env.NANOGATE_TOKEN?.trim()
        ? { from: "environment", variables: ["NANOGATE_TOKEN"] }
        : { from: "token file" };
    default:
      return null;
  }
}
