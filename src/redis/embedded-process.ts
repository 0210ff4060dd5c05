/**
 * Looks at a process by its command line. It signals nobody. Invariant: a process id that was given to another program
 * since is never taken for the one that was meant.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { hasErrno } from "./embedded-probe.js";

/** Whether a living process of this host has a command line that fits; a dead one not yet collected has none. */
export async function isProcessOf(pid: number, fits: (commandLine: string) => boolean): Promise<boolean> {
  return fits(process.platform === "linux" ? await fromProc(pid) : await fromPs(pid));
}

async function fromProc(pid: number): Promise<string> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, "utf8")).replaceAll("\0", " ");
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESRCH")) return "";
    throw error;
  }
}

async function fromPs(pid: number): Promise<string> {
  try {
    return (await promisify(execFile)("ps", ["-o", "command=", "-p", String(pid)])).stdout;
  } catch (error) {
    // `ps` ends with 1 when there is no such process.
    if (error instanceof Error && "code" in error && error.code === 1) return "";
    throw error;
  }
}
