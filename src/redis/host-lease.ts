/**
 * The lease of a host on a workspace whose file system cannot append atomically between hosts (NFS): all its workers must
 * run on one host. Processes of one host share it. It judges no file system. Invariant: while it is held here, no process of
 * another host has it; one that dies keeps it for the length of a lease.
 */
import { NanogateError } from "../errors.js";
import type { Logger } from "../logger.js";
import { list } from "./reply.js";
import type { Scripts } from "./scripts.js";

export interface HostLeaseDeps {
  scripts: Scripts;
  leaseMs: number;
  /** The name of this host; another one in tests. */
  host: string;
  logger: Logger;
}

/** The account under which the ownership script keeps it; no channel is called so. */
const ACCOUNT = "#host";

export class HostLease {
  readonly #deps: HostLeaseDeps;
  #timer: NodeJS.Timeout | null = null;

  constructor(deps: HostLeaseDeps) {
    this.#deps = deps;
  }

  /**
   * Takes the lease and keeps it. `onLost` is called once when another host has taken it (this one was away for longer
   * than the lease). Throws `WORKSPACE_UNUSABLE` when another host has it.
   */
  async take(onLost: () => void): Promise<void> {
    if (!(await this.#prolong())) {
      throw new NanogateError(
        "WORKSPACE_UNUSABLE",
        "The workspace lies on a network file system and another host works on it; there, all workers must run on one host.",
      );
    }
    this.#timer = setInterval(() => void this.#keep(onLost), this.#deps.leaseMs / 3);
  }

  /** Keeps it no longer; others of this host may, and another host waits for its end. */
  release(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  async #keep(onLost: () => void): Promise<void> {
    try {
      if (await this.#prolong()) return;
      this.release();
      this.#deps.logger.fatal("another host took the workspace over; this process ends");
      onLost();
    } catch (error) {
      this.#deps.logger.warn({ err: error }, "the host's lease could not be renewed");
    }
  }

  async #prolong(): Promise<boolean> {
    const { scripts, leaseMs, host } = this.#deps;
    const reply = await scripts.run("own-account", { account: ACCOUNT, owner: host, leaseMs }, leaseMs / 3);
    return list(reply).length > 0;
  }
}
