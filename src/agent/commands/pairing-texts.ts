/**
 * What an owner is told about pairings, the same words in a chat and on the command line. Pure. Invariant: each outcome has
 * words of its own, which say what to do next.
 */
import type { CodeDecision, PairedPerson, WaitingCode } from "./ports.js";

/** How a decision about a code ended. */
export function decisionText(verdict: "approve" | "deny", decision: CodeDecision): string {
  switch (decision.kind) {
    case "done": {
      const who = `${decision.senderId} on ${decision.channel}`;
      if (verdict === "deny") return `${who} was denied, and gets no new code for an hour.`;
      return `${who} is paired now${decision.isOwner ? ", and an owner, being the first" : ""}.`;
    }
    case "unknown":
      return "There is no such code. Compare it with the list of those that wait.";
    case "expired":
      return "This code has expired. Whoever got it must write to the bot again and ask for a new one.";
    case "used":
      return "This code was decided about already; a code counts once.";
    case "locked":
      return `Too many wrong codes: none is taken for ${minutes(decision.forMs)}, not even a right one.`;
    default:
      return decision satisfies never;
  }
}

/** Whether a pairing was taken back. */
export function revokedText({ channel, senderId }: Omit<PairedPerson, "isOwner">, wasPaired: boolean): string {
  const who = `${senderId} on ${channel}`;
  return wasPaired ? `${who} is no longer paired.` : `${who} is not paired. Compare with the list of those who are.`;
}

/** Who waits and who is paired. */
export function listText(waiting: readonly WaitingCode[], paired: readonly PairedPerson[]): string {
  const codes = waiting.map(
    ({ code, channel, senderId, leftMs }) => `- \`${code}\`: ${senderId} on ${channel}, ${minutes(leftMs)} left`,
  );
  const people = paired.map(
    ({ channel, senderId, isOwner }) => `- ${senderId} on ${channel}${isOwner ? ", owner" : ""}`,
  );
  return [
    ...(codes.length === 0 ? ["Nobody waits to be paired."] : ["Waiting:", ...codes]),
    ...(people.length === 0 ? ["Nobody is paired."] : ["Paired:", ...people]),
  ].join("\n");
}

/** Whole minutes, as long as there is one. */
function minutes(ms: number): string {
  const count = Math.round(ms / 60_000);
  if (count === 0) return "less than a minute";
  return `${count} ${count === 1 ? "minute" : "minutes"}`;
}
