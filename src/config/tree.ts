/**
 * Plain JSON trees: merging, replacing `${NAME}`, comparing keys, freezing. It knows no setting and reads no
 * environment but the one handed in. Invariant: nothing handed in is changed, except by `deepFreeze`.
 */
import type { Environment } from "./paths.js";

type Branch = Readonly<Record<string, unknown>>;
type Path = readonly PropertyKey[];

const TEMPLATE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** True for an object that is neither null nor a list. */
export function isBranch(value: unknown): value is Branch {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `above` laid over `below`: objects are joined key by key, everything else is replaced. */
export function mergeTrees(below: unknown, above: unknown): unknown {
  if (above === undefined) return below;
  if (!isBranch(below) || !isBranch(above)) return above;
  const keys = new Set([...Object.keys(below), ...Object.keys(above)]);
  return Object.fromEntries([...keys].map((key) => [key, mergeTrees(own(below, key), own(above, key))]));
}

function own(branch: Branch, key: string): unknown {
  return Object.hasOwn(branch, key) ? branch[key] : undefined;
}

/** The variables that a text takes its value from. */
export function templateVariables(text: string): string[] {
  return [...text.matchAll(TEMPLATE)].map(([, variable = ""]) => variable);
}

/** A template whose variable is not set (or empty). */
export interface MissingVariable {
  path: Path;
  variable: string;
}

/**
 * A copy with `${NAME}` replaced in every text, except in parts that say `enabled: false`. A text that equals the
 * built-in one at its place becomes null when its variable is missing; any other is reported.
 */
export function fillTemplates(
  tree: unknown,
  builtIn: unknown,
  env: Environment,
): { tree: unknown; missing: MissingVariable[] } {
  const missing: MissingVariable[] = [];
  const fill = (value: unknown, standard: unknown, path: Path): unknown => {
    if (typeof value === "string") return fillText(value, value === standard, path);
    if (Array.isArray(value)) return value.map((item, index) => fill(item, undefined, [...path, index]));
    if (!isBranch(value) || value.enabled === false) return value;
    const below = isBranch(standard) ? standard : {};
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, fill(item, own(below, key), [...path, key])]),
    );
  };
  const fillText = (text: string, isBuiltIn: boolean, path: Path): string | null => {
    let isAbsent = false;
    const filled = text.replace(TEMPLATE, (_template, variable: string) => {
      const value = env[variable];
      if (value) return value;
      if (isBuiltIn) isAbsent = true;
      else missing.push({ path, variable });
      return "";
    });
    return isAbsent ? null : filled;
  };
  return { tree: fill(tree, builtIn, []), missing };
}

/** Paths of keys in `written` that `understood` does not have; nothing is looked for below such a key. */
export function unknownKeys(written: unknown, understood: unknown, path: readonly string[] = []): string[] {
  if (!isBranch(written) || !isBranch(understood)) return [];
  return Object.entries(written).flatMap(([key, value]) => {
    const here = [...path, key];
    return Object.hasOwn(understood, key) ? unknownKeys(value, understood[key], here) : [here.join(".")];
  });
}

/** The value at a path; undefined where there is none. */
export function valueAt(tree: unknown, path: Path): unknown {
  let value = tree;
  for (const step of path) {
    if (Array.isArray(value) && typeof step === "number") value = value[step];
    else if (isBranch(value)) value = own(value, String(step));
    else return undefined;
  }
  return value;
}

/** Calls `visit` for every text of a tree with the key it stands under. */
export function eachText(tree: unknown, visit: (text: string, key: string) => void, key = ""): void {
  if (typeof tree === "string") visit(tree, key);
  else if (Array.isArray(tree)) for (const item of tree) eachText(item, visit, key);
  else if (isBranch(tree)) for (const [name, item] of Object.entries(tree)) eachText(item, visit, name);
}

/** Freezes a tree in place, all the way down. */
export function deepFreeze<T>(tree: T): T {
  if (typeof tree !== "object" || tree === null || Object.isFrozen(tree)) return tree;
  Object.freeze(tree);
  for (const value of Object.values(tree)) deepFreeze(value);
  return tree;
}
