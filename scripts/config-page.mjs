/**
 * The table of `docs/configuration.md`, made from the schema: every setting with its default, what is allowed and what it
 * is for. It reads and writes no file. Invariant: each setting of the schema has exactly one row.
 */

const BEGIN = "<!-- settings: made by npm run schema -->";
const END = "<!-- end of settings -->";

/** The page with its table renewed; `schema` is the JSON Schema. Throws when the page has no place for it. */
export function withSettings(page, schema) {
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error("docs/configuration.md has lost the marks of its table");
  const head = "| setting | default | allowed | what it is for |\n|---|---|---|---|";
  return `${before}${BEGIN}\n\n${head}\n${rowsOf(schema, "").join("\n")}\n\n${END}${after}`;
}

function rowsOf(node, path) {
  if (node.properties !== undefined) {
    return Object.entries(node.properties).flatMap(([name, child]) => rowsOf(child, path ? `${path}.${name}` : name));
  }
  if (typeof node.additionalProperties === "object") return rowsOf(node.additionalProperties, `${path}.<name>`);
  const fallback = node.default === undefined ? "needed" : `\`${JSON.stringify(node.default)}\``;
  return [`| \`${path}\` | ${fallback} | ${allowed(node)} | ${node.description ?? ""} |`];
}

function allowed(node) {
  if (node.anyOf !== undefined) return node.anyOf.map(allowed).join(", or ");
  if (node.enum !== undefined) return node.enum.map((word) => `\`"${word}"\``).join(", ");
  if (node.type === "array") return `list: ${allowed(node.items)}`;
  if (node.const !== undefined) return `\`"${node.const}"\``;
  const kinds = { boolean: "true or false", string: "text", null: "null", integer: "whole number", number: "number" };
  const kind = kinds[node.type] ?? node.type;
  return node.minimum === undefined ? kind : `${kind}, ${node.minimum} to ${node.maximum}`;
}
