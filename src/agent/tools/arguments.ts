/**
 * From the JSON text a model wrote to the input of a tool: parsed, unwrapped, cast where the meaning is plain, checked.
 * It runs nothing and guesses nothing. Invariant: what does not fit is answered with a text that says what would fit;
 * nothing is thrown.
 */
import { z } from "zod";
import { castObject, type JsonSchema, propertiesOf } from "./casts.js";
import { nearest } from "./nearest.js";

type Parsed<T> = { ok: true; value: T } | { ok: false; problem: string };

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Schemas never change, and making one takes longer than most of a turn's own work. */
const made = new WeakMap<z.ZodType, JsonSchema>();

/** The schema of a tool's input as the model is shown it. */
export function inputSchemaOf(input: z.ZodType): JsonSchema {
  const known = made.get(input);
  if (known !== undefined) return known;
  const { $schema: _dialect, ...schema } = z.toJSONSchema(input, { io: "input" });
  made.set(input, schema);
  return schema;
}

function usageOf(schema: JsonSchema): string {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const names = Object.keys(propertiesOf(schema)).map((name) => (required.has(name) ? name : `${name}?`));
  return `Send one JSON object with: ${names.join(", ") || "nothing"}.`;
}

function parseJson(text: string): Parsed<unknown> {
  if (text.trim() === "") return { ok: true, value: {} };
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    return { ok: false, problem: `The arguments are not valid JSON (${error instanceof Error ? error.message : ""}).` };
  }
}

/** Peels a JSON string of an object, and the wrapper `{arguments: …}` that some models add. [TOOL-2] */
function unwrap(value: unknown, schema: JsonSchema, depth = 0): Parsed<Record<string, unknown>> {
  if (value === null || value === undefined) return { ok: true, value: {} };
  if (typeof value === "string" && depth < 3) {
    const inner = parseJson(value);
    return inner.ok ? unwrap(inner.value, schema, depth + 1) : inner;
  }
  if (!isObject(value)) {
    const kind = Array.isArray(value) ? "a list" : `a ${typeof value}`;
    return { ok: false, problem: `The arguments are ${kind}, not an object.` };
  }
  const isWrapper = Object.keys(value).join() === "arguments" && !Object.hasOwn(propertiesOf(schema), "arguments");
  return isWrapper && depth < 3 ? unwrap(value.arguments, schema, depth + 1) : { ok: true, value };
}

function unknownParameters(value: Record<string, unknown>, schema: JsonSchema): string | null {
  const extra = schema.additionalProperties;
  if (extra === true || isObject(extra)) return null;
  const known = Object.keys(propertiesOf(schema));
  const strange = Object.keys(value).filter((name) => !known.includes(name));
  if (strange.length === 0) return null;
  const hints = strange.map((name) => {
    const meant = nearest(name, known);
    return meant === null ? `"${name}"` : `"${name}" (did you mean "${meant}"?)`;
  });
  return `Unknown parameter: ${hints.join(", ")}.`;
}

function issueText(issue: z.core.$ZodIssue): string {
  const path = issue.path.map(String).join(".");
  return path === "" ? issue.message : `${path}: ${issue.message}`;
}

/** The checked input for a tool, or a text for the model. [TOOL-2, 3] */
export function parseArguments<Input>(text: string, input: z.ZodType<Input>): Parsed<Input> {
  const schema = inputSchemaOf(input);
  const refuse = (problem: string): Parsed<Input> => ({ ok: false, problem: `${problem} ${usageOf(schema)}` });
  const json = parseJson(text);
  const object = json.ok ? unwrap(json.value, schema) : json;
  if (!object.ok) return refuse(object.problem);
  const strange = unknownParameters(object.value, schema);
  if (strange !== null) return refuse(strange);
  const checked = input.safeParse(castObject(object.value, schema));
  if (checked.success) return { ok: true, value: checked.data };
  return refuse(`The arguments do not fit: ${checked.error.issues.map(issueText).join("; ")}.`);
}
