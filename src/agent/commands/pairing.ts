/**
 * `/pairing`: an owner lists, approves, denies and revokes pairings in a chat. It sends nothing; its text is the answer.
 * Invariants: nobody but an owner who wrote it gets more than a refusal; repeated after a crash, a decision says what it
 * said before.
 */
import { type InboundMessage, inboundKeyOf } from "../../bus/messages.js";
import { decisionText, listText, revokedText } from "./pairing-texts.js";
import type { Pairings } from "./ports.js";

const USAGE = "Use /pairing list, /pairing approve CODE, /pairing deny CODE, or /pairing revoke CHANNEL USER.";

/** Carries a `/pairing` out and gives the answer. Throws `BUS_UNAVAILABLE`, and then nothing is known to have happened. */
export type PairingCommand = (message: InboundMessage, args: string) => Promise<string>;

export function createPairingCommand(pairings: Pairings): PairingCommand {
  return async (message, args) => {
    if (!message.isOwner) return "Only an owner may decide about pairings.";
    // What a button says was written by a model, not by who presses it.
    if (message.kind === "callback") return "Write this command yourself; it does not come from a button.";
    const [word = "list", first, second, ...rest] = args === "" ? [] : args.split(" ");
    const verb = word.toLowerCase();
    if (rest.length > 0) return USAGE;
    if (verb === "list" && first === undefined) return listText(await pairings.pending(), await pairings.paired());
    if ((verb === "approve" || verb === "deny") && first !== undefined) {
      // A code may have been typed with a gap in its middle.
      const code = first + (second ?? "");
      const by = `${message.channel}:${message.senderId}`;
      const decision = await pairings.decide({ verdict: verb, code, by, call: inboundKeyOf(message) });
      return decisionText(verb, decision);
    }
    if (verb === "revoke" && first !== undefined && second !== undefined) {
      const who = { channel: first.toLowerCase(), senderId: second };
      return revokedText(who, await pairings.revoke(who.channel, who.senderId));
    }
    return USAGE;
  };
}
