/**
 * Where things of one installation lie: the home folder and what is in it. Pure; it creates and reads nothing.
 * Invariant: every path it returns is absolute.
 */
import { homedir } from "node:os";
import path from "node:path";

/** The variables that a program was started with. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** `~/.nanogate`, or where NANOGATE_HOME moves it; relative ones are meant from `cwd`. */
export function homeFolder(env: Environment, cwd: string): string {
  const moved = env.NANOGATE_HOME?.trim();
  const standard = path.join(homedir(), ".nanogate");
  return moved ? resolvePath(moved, { home: standard, base: cwd }) : standard;
}

/**
 * The absolute form of a path that a person wrote. `~/.nanogate` stands for `home` wherever that is; any other `~` for
 * the user's own folder; relative paths are meant from `base`.
 */
export function resolvePath(written: string, from: { home: string; base: string }): string {
  if (written === "~") return homedir();
  if (!written.startsWith("~/")) return path.resolve(from.base, written);
  const [first, ...rest] = written.slice(2).split("/");
  return first === ".nanogate" ? path.join(from.home, ...rest) : path.join(homedir(), written.slice(2));
}

/** The config file that is read when none is named. */
export function configFileIn(home: string): string {
  return path.join(home, "config.json");
}

/** The file that may hold the gateway token. */
export function tokenFileIn(home: string): string {
  return path.join(home, "token");
}

/** The folder of the embedded Redis. */
export function redisFolderIn(home: string): string {
  return path.join(home, "redis");
}
