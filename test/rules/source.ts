/**
 * Reads the source for the tests of its rules: imports, texts, words and comments, from the parsed code and not from
 * its looks. It judges nothing.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "vite";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** One file of TypeScript. Paths are relative to the folder that was read, with "/" and without ".ts". */
export interface SourceFile {
  name: string;
  /** Modules of ours, as names of the same kind. */
  imports: string[];
  /** Packages, and `node:` modules. */
  packages: string[];
  /** Every text in the code, without those that name modules. */
  texts: string[];
  usesAny: boolean;
  readsEnvironment: boolean;
  hasDefaultExport: boolean;
  /** The comment that the file opens with; empty when there is none. */
  header: string;
  lines: number;
}

type Node = Readonly<Record<string, unknown>>;

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null;
}

function walk(value: unknown, visit: (node: Node) => void): void {
  if (Array.isArray(value)) for (const item of value) walk(item, visit);
  else if (isNode(value)) {
    visit(value);
    for (const child of Object.values(value)) walk(child, visit);
  }
}

/** The name of a property that is read, or null. */
function memberOf(node: Node, object: string): unknown {
  if (node.type !== "MemberExpression" || !isNode(node.object) || !isNode(node.property)) return null;
  return node.object.name === object ? (node.property.name ?? node.property.value) : null;
}

/** Parses one file. */
export function parseSource(name: string, code: string): SourceFile {
  const { program, comments, errors } = parseSync(`${name}.ts`, code);
  if (errors.length > 0) throw new Error(`${name}: ${errors[0]?.message}`);
  const modules = new Map<Node, string>();
  const file = { name, imports: [] as string[], packages: [] as string[], texts: [] as string[] };
  const flags = { usesAny: false, readsEnvironment: false, hasDefaultExport: false };
  walk(program, (node) => {
    if (isNode(node.source) && typeof node.source.value === "string") modules.set(node.source, node.source.value);
    if (node.type === "Literal" && typeof node.value === "string" && !modules.has(node)) file.texts.push(node.value);
    if (node.type === "TemplateElement" && isNode(node.value)) file.texts.push(String(node.value.cooked));
    if (node.type === "TSAnyKeyword") flags.usesAny = true;
    if (node.type === "ExportDefaultDeclaration") flags.hasDefaultExport = true;
    if (memberOf(node, "process") === "env") flags.readsEnvironment = true;
    // `import { env } from "node:process"` reads it as well.
    if (node.type === "ImportDeclaration" && modulesNameProcess(node)) flags.readsEnvironment = true;
  });
  for (const module of modules.values()) {
    if (module.startsWith("."))
      file.imports.push(path.posix.join(path.posix.dirname(name), module).replace(/\.js$/, ""));
    else file.packages.push(module);
  }
  const [first] = comments;
  const header =
    first !== undefined &&
    code
      .slice(0, first.start)
      .replace(/^#!.*\n/, "")
      .trim() === ""
      ? first.value
      : "";
  return { ...file, ...flags, header, lines: code.replace(/\n$/, "").split("\n").length };
}

function modulesNameProcess(node: Node): boolean {
  return isNode(node.source) && (node.source.value === "node:process" || node.source.value === "process");
}

/** Every TypeScript file below a folder of the repository. */
export function readSources(folder: string): SourceFile[] {
  const base = path.join(root, folder);
  return readdirSync(base, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) =>
      parseSource(file.slice(0, -3).replaceAll(path.sep, "/"), readFileSync(path.join(base, file), "utf8")),
    );
}
