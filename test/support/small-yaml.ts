/**
 * Reads the part of YAML that a compose file needs: maps and lists by indentation, flow lists in JSON, quoted and plain
 * scalars, comments. It refuses what it does not know, so that nothing is read differently from what YAML means.
 */

export type Yaml = string | null | Yaml[] | { [key: string]: Yaml };

interface Line {
  indent: number;
  text: string;
}

function linesOf(source: string): Line[] {
  return source.split("\n").flatMap((line) => {
    const text = line.trim();
    if (text === "" || text.startsWith("#")) return [];
    if (line.includes("\t")) throw new Error(`a tab in ${JSON.stringify(line)}`);
    return [{ indent: line.length - line.trimStart().length, text }];
  });
}

function scalar(text: string): Yaml {
  if (text.startsWith("[") || text.startsWith('"')) return JSON.parse(text) as Yaml;
  if (/^[&*!|>%@`'{]/.test(text) || / #|: /.test(text)) throw new Error(`not understood: ${text}`);
  return text;
}

function block(lines: Line[], indent: number): Yaml {
  return lines[0]?.text.startsWith("- ") === true ? list(lines, indent) : map(lines, indent);
}

function list(lines: Line[], indent: number): Yaml[] {
  const items: Yaml[] = [];
  while (lines[0]?.indent === indent && lines[0].text.startsWith("- ")) {
    items.push(scalar(lines[0].text.slice(2).trim()));
    lines.shift();
  }
  return items;
}

function map(lines: Line[], indent: number): Yaml {
  const found: { [key: string]: Yaml } = {};
  while (lines[0]?.indent === indent) {
    const [, key, rest = ""] = /^([\w-]+):(?: (.*))?$/.exec(lines[0].text) ?? [];
    if (key === undefined || Object.hasOwn(found, key)) throw new Error(`not understood: ${lines[0].text}`);
    lines.shift();
    const inner = lines[0]?.indent ?? 0;
    if (rest !== "") found[key] = scalar(rest);
    else found[key] = inner > indent ? block(lines, inner) : null;
  }
  return found;
}

/** Throws on what it does not understand. */
export function readYaml(source: string): Yaml {
  const lines = linesOf(source);
  const read = block(lines, 0);
  if (lines[0] !== undefined) throw new Error(`not understood: ${lines[0].text}`);
  return read;
}
