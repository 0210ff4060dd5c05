/**
 * Who is who among processes: the name under which this one holds leases, and whether another one of this host still
 * lives. It signals nobody. Invariant: a pid that was given to a new process is not taken for its dead owner, since the
 * name carries the start time.
 */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** `<host>/<pid>/<start time>/<random>`. */
export type Owner = string & { readonly __brand: "Owner" };

function readOr(read: () => string, fallback: string): string {
  try {
    return read();
  } catch {
    // Only Linux has these files; elsewhere the host's name has to do.
    return fallback;
  }
}

/** A name for everything that shares this process' table of pids: two containers of one machine differ. */
export function hostId(): string {
  const boot = readOr(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8"), "");
  const namespace = readOr(() => readlinkSync("/proc/self/ns/pid"), "");
  return createHash("sha256").update(`${hostname()}|${boot}|${namespace}`).digest("base64url").slice(0, 12);
}

/** Start time of a process in clock ticks since boot (field 22 of its stat file); empty where that is not known. */
function startTimeOf(pid: number): string {
  const stat = readOr(() => readFileSync(`/proc/${pid}/stat`, "utf8"), "");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

/** The name of this process, made once by the composition root. */
export function createOwner(): Owner {
  const { pid } = process;
  return `${hostId()}/${pid}/${startTimeOf(pid)}/${randomBytes(6).toString("base64url")}` as Owner;
}

function isAlive(pid: number, startTime: string): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives and belongs to somebody else.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
  const stat = readOr(() => readFileSync(`/proc/${pid}/stat`, "utf8"), "");
  const state = stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
  // A zombie (Z) has ended; its parent has only not asked yet.
  return state !== "Z" && startTimeOf(pid) === startTime;
}

/** Those of `owners` that were processes of this host and have ended. Others are judged by their leases alone. */
export function deadOwners(owners: readonly string[]): string[] {
  const here = hostId();
  return owners.filter((owner) => {
    const [host, pid, startTime] = owner.split("/");
    return host === here && pid !== undefined && startTime !== undefined && !isAlive(Number(pid), startTime);
  });
}
