/**
 * Who may connect by WebSocket, in a sentence for the operator; pure. The rules themselves are in `identity.ts`.
 * Invariant: the sentence follows from the same settings as the rules, and holds no secret.
 */

/** The effective policy. `token` is the gateway's, null when none is set. */
export function describePolicy({ enabled, token }: { enabled: boolean; token: string | null }): string {
  if (!enabled) return "Off: nobody may connect.";
  return token === null
    ? "Only this machine: the page sees every chat, each client_id only its own."
    : "Whoever has the gateway token, and sees every chat then; whoever has a one-time token, as the client it is for.";
}
