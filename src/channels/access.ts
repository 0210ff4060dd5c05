/**
 * The one check of every path: may this person, here, speak? The rules come first, then what only Redis knows: pairings and
 * what other bots have said. Invariants: nothing but a stranger's pairing code is visible before somebody is admitted; a
 * group stays silent for strangers; while Redis is away nobody gets in.
 */
import type { Logger } from "../logger.js";
import { type AccessPolicy, judge } from "./access-rules.js";
import type { Admission, Knock } from "./channel.js";
import { askForPairing, type PairingDeps } from "./pairing.js";
import type { BotBudget } from "./ports.js";

export interface AdmissionDeps extends PairingDeps {
  budget: BotBudget;
  logger: Logger;
}

/** Decides about one knock under a channel's policy. Throws `BUS_UNAVAILABLE`: the platform must be asked again. */
export type Admit = (knock: Knock, policy: AccessPolicy) => Promise<Admission>;

export function createAdmission(deps: AdmissionDeps): Admit {
  return async (knock, policy) => {
    const admission = await decide(deps, knock, policy);
    if (admission.kind === "refused")
      deps.logger.debug({ ...idsOf(knock), why: admission.why }, "somebody was refused");
    return admission;
  };
}

async function decide(deps: AdmissionDeps, knock: Knock, policy: AccessPolicy): Promise<Admission> {
  const verdict = judge(knock, policy);
  if (verdict.kind === "refused") return verdict;
  if (knock.author === "bot") return withinBudget(deps, knock, policy);
  if (verdict.kind === "listed" && verdict.isOwner) return { kind: "admitted", isOwner: true };
  // Also for who is in a list: the first who was paired is an owner.
  const paired = await deps.pairings.find(knock.route.channel, knock.senderId);
  if (paired !== null) return { kind: "admitted", isOwner: paired.isOwner };
  if (verdict.kind === "listed") return { kind: "admitted", isOwner: false };
  if (knock.scene.kind === "group")
    return { kind: "refused", why: "you are in no list of mine and not paired; send me a direct message to be let in" };
  return meetStranger(deps, knock);
}

async function withinBudget(
  { budget, logger }: AdmissionDeps,
  knock: Knock,
  { botBudget }: AccessPolicy,
): Promise<Admission> {
  const { channel, chatId } = knock.route;
  const spending = { channel, chatId, botId: knock.senderId, messageId: knock.messageId, ...botBudget };
  const outcome = await budget.spend(spending);
  if (outcome === "taken") return { kind: "admitted", isOwner: false };
  if (outcome === "spent")
    logger.warn(
      { ...idsOf(knock), ...botBudget },
      "another bot has used its budget up; it is not answered for a while",
    );
  return { kind: "refused", why: "the budget of this bot is spent" };
}

async function meetStranger(deps: AdmissionDeps, knock: Knock): Promise<Admission> {
  const answer = await askForPairing(deps, knock);
  switch (answer.kind) {
    case "paired":
      return { kind: "admitted", isOwner: answer.isOwner };
    case "code":
      // As often as it is told, so that a stranger cannot fill the log.
      if (answer.isNew) deps.logger.info(idsOf(knock), "a stranger asks to be paired: nanogate pairing list");
      return { kind: "refused", why: "you are not paired yet; the message with your pairing code says what to do" };
    case "full":
      return { kind: "refused", why: "you are not paired, and too many people wait for it; try again later" };
    case "denied":
      return { kind: "refused", why: "an owner said no" };
    default:
      return answer satisfies never;
  }
}

function idsOf({ senderId, messageId, route }: Knock) {
  const { channel, account, chatId } = route;
  return { channel, account, chatId, senderId, messageId };
}
