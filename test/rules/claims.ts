/**
 * Finds in a page of documentation what can be checked: files, commands of ours, npm scripts, names in capitals, keys of
 * the configuration. It reads only what stands in backticks, in fenced blocks and in links, and judges nothing.
 */

/** Something that a page says exists. */
export type Claim =
  | { type: "file"; path: string }
  | { type: "command"; name: string; options: string[] }
  | { type: "script"; name: string }
  | { type: "name"; name: string }
  | { type: "setting"; path: string[] };

const FOLDERS = /^(?:src|test|docs|scripts|config|bench|web|\.ci)\//;
const ROOT_FILE = /^(?:Dockerfile|LICENSE|[\w.-]+\.(?:json|md|ya?ml|ts))$/;
const SHELL = new Set(["", "sh", "bash", "shell", "console"]);

/** Everything a page claims. `settings` are the names of the top of the configuration. */
export function claimsOf(page: string, settings: ReadonlySet<string>): Claim[] {
  const fences = [...page.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)];
  const prose = page.replace(/^```[\s\S]*?^```/gm, "");
  const lines = fences.flatMap(([, language = "", body = ""]) => (SHELL.has(language) ? body.split("\n") : []));
  const words = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, word = ""]) => word);
  const links = [...prose.matchAll(/\]\(([^)#\s]+)/g)].map(([, target = ""]) => target);
  return [
    ...lines.flatMap((line) => commandsIn(line.replace(/^\s*\$\s+/, "").replace(/\s#.*$/, ""))),
    ...words.flatMap((word) => claimsOfWord(word, settings)),
    ...links.filter((target) => !/^[a-z]+:/.test(target)).map((path): Claim => ({ type: "file", path })),
  ];
}

function claimsOfWord(word: string, settings: ReadonlySet<string>): Claim[] {
  const commands = commandsIn(word);
  if (commands.length > 0) return commands;
  if (/[<>{}*|…\s]/.test(word.replace(/: .*$/, ""))) return [];
  if (FOLDERS.test(word) || ROOT_FILE.test(word)) return [{ type: "file", path: word }];
  if (/^[A-Z]+(?:_[A-Z]+)+$/.test(word)) return [{ type: "name", name: word }];
  const [key = ""] = word.split(/[:=]/);
  const path = key.split(".");
  const isSetting = path.length > 1 && settings.has(path[0] ?? "") && path.every((part) => /^[A-Za-z]+$/.test(part));
  return isSetting ? [{ type: "setting", path }] : [];
}

function commandsIn(line: string): Claim[] {
  return line.split(/&&|\||;/).flatMap((part): Claim[] => {
    const [first, ...rest] = part
      .trim()
      .replace(/^(?:\w+=\S*\s+)+/, "")
      .split(/\s+/);
    if (first === "npm") return scriptsIn(rest);
    if (first === "npx" && rest[0] === "nanogate") return ofNanogate(rest.slice(1));
    return first === "nanogate" && rest.length > 0 ? ofNanogate(rest) : [];
  });
}

function scriptsIn([verb, name]: readonly string[]): Claim[] {
  if (verb === "run" && name !== undefined && /^[\w:-]+$/.test(name)) return [{ type: "script", name }];
  return verb === "test" || verb === "start" ? [{ type: "script", name: verb }] : [];
}

function ofNanogate(words: readonly string[]): Claim[] {
  const [name = ""] = words;
  const options = words.flatMap((word) => /^\[?(--[a-z][a-z-]*)/.exec(word)?.[1] ?? []);
  return [{ type: "command", name: /^[a-z]+$/.test(name) ? name : "", options }];
}
