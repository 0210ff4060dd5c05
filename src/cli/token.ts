/**
 * `nanogate token`: prints the token that clients of this home's gateway need. It makes none. Invariant: the token, and
 * nothing else, is on standard output.
 */
import { openConfig } from "./open.js";
import type { AnswerOptions } from "./options.js";
import { fail, say, sayJson } from "./output.js";

export async function tokenCommand(options: AnswerOptions): Promise<number> {
  const { loaded } = await openConfig(options);
  const { token } = loaded.config.gateway;
  if (token === null)
    return fail(
      "No gateway token is set: clients of this machine need none.",
      "Start the gateway with --ensure-token, or set NANOGATE_TOKEN or gateway.token.",
    );
  if (options.json === true) sayJson({ token });
  else say(token);
  return 0;
}
