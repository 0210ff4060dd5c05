/**
 * What commands share: the configuration, a quiet log, and the sessions of a folder. It prints nothing and connects to
 * nothing. Invariant: whatever a command logs is redacted, and by default it logs failures only.
 */
import { type LoadedConfig, loadConfig } from "../config/load.js";
import { createFaultHook, type FaultHook, noFaults } from "../faults.js";
import { createLogger, type Logger } from "../logger.js";
import { nodeIo } from "../session/io.js";
import { SessionManager } from "../session/manager.js";
import type { CommonOptions } from "./options.js";

export interface Opened {
  loaded: LoadedConfig;
  logger: Logger;
}

/** Loads the configuration. Throws `CONFIG_INVALID` or `CONFIG_UNREADABLE`. */
export async function openConfig({ config, workspace }: CommonOptions): Promise<Opened> {
  const loaded = await loadConfig({ file: config, workspace });
  return { loaded, logger: createLogger({ level: quieter(loaded.logLevel), secrets: loaded.secrets }) };
}

/** A command says itself what matters; whoever asks for the rest gets it. */
function quieter(level: string): string {
  return level === "info" || level === "warn" ? "error" : level;
}

/** The sessions of a folder, for a command. */
export function sessionsOf({ loaded, logger }: Opened, folder: string): SessionManager {
  const tools = { io: nodeIo, faults: faultsOf(loaded), logger, clock: Date.now };
  return new SessionManager({ folder, fsync: loaded.config.session.fsync, cacheSize: 0, tools });
}

/** Where a test may end the command. */
export function faultsOf({ fault }: LoadedConfig): FaultHook {
  return fault === null ? noFaults : createFaultHook(fault);
}
