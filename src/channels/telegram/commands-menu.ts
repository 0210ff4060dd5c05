/**
 * The platform's menu of commands, from the gateway's one table. It carries none out. Invariant: it shows what everybody may
 * use; that it cannot be shown holds nothing up.
 */
import type { Api } from "grammy";
import { COMMANDS } from "../../commands.js";
import type { Logger } from "../../logger.js";
import { safeError } from "./api-error.js";
import { menuName } from "./parse-address.js";
import { sdkSignal } from "./sdk-signal.js";

const NAME = /^[a-z0-9_]{1,32}$/;
const MAX_SUMMARY = 256;

/** The entries, as the platform takes them. */
export function menuOf(): Array<{ command: string; description: string }> {
  return COMMANDS.filter(({ role }) => role === "anyone")
    .map(({ name, summary }) => ({ command: menuName(name), description: summary.slice(0, MAX_SUMMARY) }))
    .filter(({ command }) => NAME.test(command));
}

export async function showMenu(api: Api, { logger, signal }: { logger: Logger; signal: AbortSignal }): Promise<void> {
  try {
    await api.setMyCommands(menuOf(), {}, sdkSignal(signal));
  } catch (error) {
    if (!signal.aborted) logger.warn({ err: safeError(error) }, "the menu of commands could not be set");
  }
}
