/**
 * `nanogate channels status`: who may talk to each channel, and how the channel is. Policies follow from the configuration,
 * health is asked of the running gateway. Invariant: a channel is called healthy only when a gateway said so.
 */
import { type ChannelPolicy, describeChannels } from "../channels/registry.js";
import { type GatewayLook, lookForGateway } from "./gateway-look.js";
import { openConfig } from "./open.js";
import type { AnswerOptions } from "./options.js";
import { oneLine, say, sayJson, sayTable } from "./output.js";

type Health = { state: "off" | "ok" | "unknown" } | { state: "failed"; problem: string; advice: string };

export async function channelsStatusCommand(options: AnswerOptions): Promise<number> {
  const { loaded } = await openConfig(options);
  const { channels, gateway } = loaded.config;
  const look = await lookForGateway(gateway);
  const policies = describeChannels({ config: channels, token: gateway.token });
  const all = policies.map((channel) => ({ ...channel, health: healthOf(channel, look) }));
  if (options.json === true) sayJson(all);
  else {
    sayTable([
      ["CHANNEL", "HEALTH", "WHO MAY TALK TO IT"],
      ...all.map(({ name, policy, health }) => [name, healthText(health), policy]),
    ]);
    for (const { name, health } of all)
      if (health.state === "failed") say(`! ${name}: ${oneLine(`${health.problem} ${health.advice}`)}`);
  }
  return all.some(({ health }) => health.state === "failed") ? 1 : 0;
}

function healthOf({ name, enabled }: ChannelPolicy, look: GatewayLook): Health {
  if (!enabled) return { state: "off" };
  // A worker has no channels, so it cannot say.
  if (look.state !== "gateway" || look.role === "worker") return { state: "unknown" };
  const found = look.problems.find(({ part }) => part === name);
  return found === undefined ? { state: "ok" } : { state: "failed", problem: found.problem, advice: found.advice };
}

function healthText(health: Health): string {
  switch (health.state) {
    case "off":
      return "off";
    case "ok":
      return "ok";
    case "unknown":
      return "unknown: no gateway answers";
    case "failed":
      return "failed";
    default:
      return health satisfies never;
  }
}
