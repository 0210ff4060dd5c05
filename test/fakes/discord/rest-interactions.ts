/**
 * Answers to slash commands and button presses: the one callback within seconds, then the webhook of the interaction.
 * Invariant: one callback an interaction, nothing after its token has ended, and an ephemeral answer is seen by its user
 * only.
 */
import { type Interaction, type Message, MessageFlag, MessageType } from "./model.js";
import { badField, Refusal } from "./refusal.js";
import { applyEdit, draftOf, shown } from "./rest-messages.js";
import { type Call, done, ok, param, type Reply, type Route } from "./routes.js";

/** Types of a callback. */
const Callback = { message: 4, deferredMessage: 5, deferredUpdate: 6, update: 7, autocomplete: 8, modal: 9 } as const;

function callback(call: Call): Reply {
  const interaction = call.world.interactions.get(param(call, "interaction"));
  if (interaction === undefined || interaction.token !== param(call, "token")) throw new Refusal(10062);
  if (interaction.state !== "pending") throw new Refusal(40060);
  if (Date.now() - interaction.createdMs > call.settings.interactionMs) throw new Refusal(10062);
  const data = (call.body.data ?? {}) as Record<string, unknown>;
  const inner = { ...call, body: data };
  const isEphemeral = (Number(data.flags ?? 0) & MessageFlag.ephemeral) !== 0;
  switch (call.body.type) {
    case Callback.message:
      Object.assign(interaction, { isEphemeral, state: "answered" });
      interaction.original = say(inner, interaction, { isLoading: false, isEphemeral });
      break;
    case Callback.deferredMessage:
      Object.assign(interaction, { isEphemeral, state: "deferred" });
      interaction.original = say(inner, interaction, { isLoading: true, isEphemeral });
      break;
    case Callback.deferredUpdate:
      press(interaction);
      break;
    case Callback.update:
      applyEdit(inner, press(interaction));
      break;
    default:
      throw badField("type", "BASE_TYPE_CHOICES", "Value must be one of {4, 5, 6, 7}.");
  }
  if (call.query.get("with_response") !== "true") return done;
  const { id, original } = interaction;
  const about = { id, type: interaction.kind === "command" ? 2 : 3, response_message_id: original?.id };
  return ok({ interaction: about, resource: { type: call.body.type, message: original && shown(call, original) } });
}

function press(interaction: Interaction): Message {
  if (interaction.message === null) throw badField("type", "BASE_TYPE_CHOICES", "Only a press can update its message.");
  Object.assign(interaction, { state: "updated", original: interaction.message });
  return interaction.message;
}

/** An ephemeral message stays out of its channel: nobody but the user sees it. */
function say(call: Call, interaction: Interaction, how: { isLoading: boolean; isEphemeral: boolean }): Message {
  const { channel } = interaction;
  const draft = how.isLoading ? {} : draftOf(call, channel, true);
  const flags = (how.isLoading ? MessageFlag.loading : 0) | (how.isEphemeral ? MessageFlag.ephemeral : 0);
  const type = interaction.kind === "command" ? MessageType.command : MessageType.reply;
  const message = call.world.post(channel, call.world.bot, { ...draft, flags, type, interaction });
  return message;
}

function interactionOf(call: Call): Interaction {
  const token = param(call, "token");
  const found = [...call.world.interactions.values()].find((each) => each.token === token);
  if (found === undefined || param(call, "application") !== call.world.bot.id) throw new Refusal(10015);
  if (Date.now() - found.createdMs > call.settings.interactionTokenMs) throw new Refusal(50027);
  if (found.state === "pending") throw new Refusal(10015);
  return found;
}

function targetOf(call: Call): Message {
  const { original, followUps } = interactionOf(call);
  const id = param(call, "original");
  const message = id === "@original" ? original : followUps.find((each) => each.id === id);
  if (message?.channel.messages.get(message.id) !== message || message === undefined) throw new Refusal(10008);
  return message;
}

function editTarget(call: Call): Reply {
  const message = targetOf(call);
  const interaction = interactionOf(call);
  applyEdit(call, message);
  if (message === interaction.original && interaction.state === "deferred") interaction.state = "answered";
  return ok(shown(call, message));
}

function followUp(call: Call): Reply {
  const interaction = interactionOf(call);
  const isEphemeral = (Number(call.body.flags ?? 0) & MessageFlag.ephemeral) !== 0;
  const { original } = interaction;
  // The first follow-up of a deferred answer takes its place.
  if (interaction.state === "deferred" && original !== null) {
    interaction.state = "answered";
    return ok(shown(call, applyEdit(call, original)));
  }
  const message = say(call, interaction, { isLoading: false, isEphemeral });
  interaction.followUps.push(message);
  return ok(shown(call, message));
}

function removeTarget(call: Call): Reply {
  call.world.remove(targetOf(call));
  return done;
}

const HOOK = "/webhooks/:application/:token";
const TARGET = `${HOOK}/messages/:original`;

export const INTERACTION_ROUTES: readonly Route[] = [
  { method: "POST", path: "/interactions/:interaction/:token/callback", isOpen: true, run: callback },
  { method: "POST", path: HOOK, isOpen: true, run: followUp },
  { method: "GET", path: TARGET, isOpen: true, run: (call) => ok(shown(call, targetOf(call))) },
  { method: "PATCH", path: TARGET, isOpen: true, run: editTarget },
  { method: "DELETE", path: TARGET, isOpen: true, run: removeTarget },
];
