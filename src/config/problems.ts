/**
 * Says what is wrong with a configuration: the path, the kind of what was found, and what is allowed. It never prints a
 * value, since any value may be a secret or come from the environment.
 */
import type { z } from "zod";
import { NanogateError } from "../errors.js";
import type { FieldProblem } from "./schema.js";
import { valueAt } from "./tree.js";

/** The kind of a value in words, never the value. */
export function kindOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  switch (typeof value) {
    case "string":
      return value === "" ? "an empty text" : "a text";
    case "number":
      return "a number";
    case "boolean":
      return "true or false";
    default:
      return "an object";
  }
}

/** The problems that the schema found, one for each field. */
export function schemaProblems(error: z.ZodError): FieldProblem[] {
  const byPath = new Map<string, FieldProblem>();
  for (const issue of error.issues) {
    const allowed = issue.code === "invalid_key" ? `${issue.issues[0]?.message ?? issue.message} here` : issue.message;
    const key = issue.path.map(String).join(".");
    if (!byPath.has(key)) byPath.set(key, { path: issue.path, allowed });
  }
  return [...byPath.values()];
}

/** One `CONFIG_INVALID` for all problems; `tree` is what was checked, `source` where it came from. */
export function configInvalid(source: string, tree: unknown, problems: readonly FieldProblem[]): NanogateError {
  const lines = problems.map(({ path, allowed, found }) => {
    const name = path.map(String).join(".") || "the whole file";
    return `  ${name}: found ${found ?? kindOf(valueAt(tree, path))}; allowed is ${allowed}`;
  });
  const count = problems.length === 1 ? "a wrong setting" : `${problems.length} wrong settings`;
  return new NanogateError("CONFIG_INVALID", [`${source} has ${count}:`, ...lines].join("\n"));
}
