/**
 * Casts of argument values by JSON Schema, only where nobody could mean anything else: "5" is a number where a number is
 * asked for, "yes" a boolean. It checks nothing; the schema does. Invariant: a value that needs no cast is kept as it is,
 * and the input is never changed.
 */

/** A JSON Schema, or a part of one. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const YES = new Set(["true", "1", "yes"]);
const NO = new Set(["false", "0", "no"]);

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function schemaAt(value: unknown): JsonSchema {
  return isRecord(value) ? value : {};
}

/** The properties of an object schema. */
export function propertiesOf(schema: JsonSchema): Readonly<Record<string, unknown>> {
  return schemaAt(schema.properties);
}

/** The plain alternatives of a schema: the branches of a union, each of several types, or itself. */
function branchesOf(schema: JsonSchema): JsonSchema[] {
  const union = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(union)) return union.flatMap((branch) => branchesOf(schemaAt(branch)));
  if (Array.isArray(schema.type)) return schema.type.map((type: unknown) => ({ ...schema, type }));
  return [schema];
}

function castString(text: string, schema: JsonSchema): unknown {
  const plain = text.trim();
  if (schema.type === "number" || schema.type === "integer") {
    const number = NUMBER.test(plain) ? Number(plain) : Number.NaN;
    return Number.isFinite(number) ? number : text;
  }
  if (schema.type === "boolean") {
    const word = plain.toLowerCase();
    return YES.has(word) ? true : NO.has(word) ? false : text;
  }
  return text;
}

function castBranch(value: unknown, schema: JsonSchema): unknown {
  if (typeof value === "string") return castString(value, schema);
  if (Array.isArray(value) && schema.type === "array") {
    return value.map((item) => castValue(item, schemaAt(schema.items)));
  }
  return isRecord(value) && schema.type === "object" ? castObject(value, schema) : value;
}

function castValue(value: unknown, schema: JsonSchema): unknown {
  const branches = branchesOf(schema);
  // Where text is allowed too, text is what was meant.
  if (typeof value === "string" && branches.some((branch) => branch.type === "string")) return value;
  for (const branch of branches) {
    const cast = castBranch(value, branch);
    if (cast !== value) return cast;
  }
  return value;
}

function allowsNull(schema: JsonSchema): boolean {
  return branchesOf(schema).some((branch) => branch.type === "null" || branch.type === undefined);
}

/** The object with every property cast; a null for a parameter that may be left out counts as left out. [TOOL-3] */
export function castObject(value: Record<string, unknown>, schema: JsonSchema): Record<string, unknown> {
  const properties = propertiesOf(schema);
  const required = Array.isArray(schema.required) ? schema.required : [];
  const cast: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) {
    const shape = Object.hasOwn(properties, name) ? schemaAt(properties[name]) : schemaAt(schema.additionalProperties);
    if (field === null && !required.includes(name) && !allowsNull(shape)) continue;
    cast[name] = castValue(field, shape);
  }
  return cast;
}
