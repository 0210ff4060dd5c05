/**
 * The one schema of the configuration: every setting, its bounds, its default and what it is for. It reads neither files nor the
 * environment, and a setting exists here only when something uses it. Invariant: `configSchema.parse({})` is the whole
 * default configuration, with `${NAME}` templates where a value comes from the environment.
 */
import { z } from "zod";
import { channels } from "./channels-schema.js";
import {
  durationMs,
  fromEnvironment,
  oneOf,
  text,
  textLike,
  wholeNumber,
  wholeNumberOrNull,
  yesOrNo,
} from "./fields.js";
import { media, transcription } from "./media-schema.js";

const HOUR_MS = 3_600_000;
const AN_OBJECT = { error: "an object" };
const AN_ADDRESS = "an http:// or https:// URL";

const redis = z.object(
  {
    url: textLike(
      /^(?:rediss?:\/\/\S+|\/\S+)$/,
      "a redis:// or rediss:// URL, the absolute path of a unix socket, or null",
    )
      .nullable()
      .default(null)
      .describe(
        "Your own Redis or Valkey: a URL, or the path of a unix socket. null: REDIS_URL, else the embedded one.",
      ),
    prefix: textLike(/^[A-Za-z0-9_.-]{1,64}$/, "1 to 64 letters, digits, dots, dashes and underscores")
      .default("nanogate")
      .describe("What the names of all keys in Redis begin with."),
    fsync: oneOf(["everysec", "always"])
      .default("everysec")
      .describe("How often the embedded server writes through to disk. Your own server has its own setting."),
  },
  AN_OBJECT,
);

const gateway = z.object(
  {
    host: text("a host name or an address")
      .default("127.0.0.1")
      .describe("Where the HTTP port listens. Anything but this machine itself needs a token."),
    port: wholeNumber(0, 65_535).default(8765).describe("The HTTP port; 0 takes any free one."),
    token: text('a text, "auto", or null')
      .nullable()
      .default("auto")
      .describe(
        'What clients must present. "auto": NANOGATE_TOKEN, else the file `token` in the home folder, else none.',
      ),
    concurrency: wholeNumber(1, 1000).default(8).describe("Turns that one process runs at the same time."),
    maxTurns: wholeNumberOrNull(1, 100_000)
      .default(null)
      .describe("Turns that run at the same time over all processes. null: no bound."),
    drainMs: durationMs(0, HOUR_MS)
      .default(25_000)
      .describe("How long turns may go on when a process is told to stop; then they are handed over to another."),
    leaseMs: durationMs(300, HOUR_MS)
      .default(15_000)
      .describe("How long a session stays with a worker that is not heard of. The same in all processes."),
  },
  AN_OBJECT,
);

const agent = z.object(
  {
    model: textLike(/^(?:auto|demo|[^/\s]+\/\S+)$/, '"auto", "demo", or provider/model')
      .default("auto")
      .describe(
        'The model, as provider/model. "auto": one of the first provider with a key, else of an Ollama, else "demo".',
      ),
    fallbackModels: z
      .array(textLike(/^(?:demo|[^/\s]+\/\S+)$/, '"demo", or provider/model'), { error: "a list of models" })
      .default([])
      .describe("Models to ask, in this order, when that one cannot be used. Those of unknown providers are skipped."),
    maxIterations: wholeNumber(1, 10_000).default(50).describe("Model calls in one turn."),
    requestTimeoutMs: durationMs(1, 24 * HOUR_MS)
      .default(300_000)
      .describe("The longest that one model call may take."),
    streamIdleTimeoutMs: durationMs(1, 24 * HOUR_MS)
      .default(90_000)
      .describe("How long a model may stay silent within a call."),
    contextWindow: wholeNumber(1024, 100_000_000)
      .default(200_000)
      .describe("Tokens that the model takes in; older history is left out of a call when it would not fit."),
    maxOutputTokens: wholeNumber(1, 10_000_000)
      .default(8192)
      .describe("The longest answer of one model call, in tokens."),
    queueMode: oneOf(["steer", "followup"])
      .default("steer")
      .describe(
        "What becomes of a message that comes while a turn runs. steer: the turn takes it in; followup: its own turn.",
      ),
    debounceMs: durationMs(0, 60_000)
      .default(0)
      .describe("How long to wait for more fragments before a turn begins; each slides the wait, at most five-fold."),
    unifiedSession: yesOrNo().default(false).describe("One session for all channels and chats."),
    toolResultMaxChars: wholeNumber(100, 10_000_000)
      .default(16_000)
      .describe("How much of a tool's result the model sees."),
  },
  AN_OBJECT,
);

const provider = z.object(
  {
    kind: oneOf(["openai", "anthropic"]).default("openai").describe("The protocol it speaks."),
    apiKey: text("a text, or null")
      .nullable()
      .default(null)
      .describe(`Its key, best as a template such as ${fromEnvironment("OPENAI_API_KEY")}. null: none is sent.`),
    baseUrl: textLike(/^https?:\/\/[^\s/]+\S*$/i, AN_ADDRESS)
      .nullable()
      .default(null)
      .describe('Where its API begins. null: Anthropic\'s own address, for the kind "anthropic"; any other needs one.'),
  },
  AN_OBJECT,
);

const session = z.object(
  {
    fsync: oneOf(["turn", "exit"])
      .default("turn")
      .describe("When session files are written through to disk: after each turn, or when the process ends."),
  },
  AN_OBJECT,
);

const tools = z.object(
  {
    restrictToWorkspace: yesOrNo()
      .default(true)
      .describe("Whether file tools stay in the workspace. false: the whole disk is open to the model."),
  },
  AN_OBJECT,
);

/** The shape of the configuration, without the checks between fields. */
export const configSchema = z
  .object(
    {
      workspace: text("the path of a folder")
        .default("~/.nanogate/workspace")
        .describe("The folder of sessions, memory and tools. Relative paths are meant from the config file."),
      redis: redis.prefault({}),
      gateway: gateway.prefault({}),
      agent: agent.prefault({}),
      providers: z
        .record(
          textLike(/^[A-Za-z0-9_.-]{1,64}$/, "a name of letters, digits, dots, dashes and underscores"),
          provider,
          { error: "an object of providers, each under its name" },
        )
        .default({
          anthropic: {
            kind: "anthropic",
            apiKey: fromEnvironment("ANTHROPIC_API_KEY"),
            baseUrl: "https://api.anthropic.com",
          },
          openai: { kind: "openai", apiKey: fromEnvironment("OPENAI_API_KEY"), baseUrl: "https://api.openai.com/v1" },
          openrouter: {
            kind: "openai",
            apiKey: fromEnvironment("OPENROUTER_API_KEY"),
            baseUrl: "https://openrouter.ai/api/v1",
          },
        }),
      channels: channels.prefault({}),
      media: media.prefault({}),
      transcription: transcription.prefault({}),
      session: session.prefault({}),
      tools: tools.prefault({}),
    },
    AN_OBJECT,
  )
  .meta({ title: "nanogate configuration" });

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

/** The configuration as the rest of the program gets it: complete, checked, frozen. */
export type Config = DeepReadonly<z.output<typeof configSchema>>;

/** A wrong field: where it is, and what is allowed there. `found` says more than the kind of the value, where it can. */
export interface FieldProblem {
  path: readonly PropertyKey[];
  allowed: string;
  found?: string;
}

/** Checks between fields; what no single field can say. */
export function crossCheck(config: Config): FieldProblem[] {
  const { agent, providers } = config;
  const problems: FieldProblem[] = [];
  if (agent.maxOutputTokens >= agent.contextWindow) {
    problems.push({ path: ["agent", "maxOutputTokens"], allowed: "less than agent.contextWindow" });
  }
  if (agent.streamIdleTimeoutMs > agent.requestTimeoutMs) {
    problems.push({ path: ["agent", "streamIdleTimeoutMs"], allowed: "at most agent.requestTimeoutMs" });
  }
  const [name, ...model] = agent.model.split("/");
  if (model.length > 0 && !Object.hasOwn(providers, name ?? "")) {
    const known = Object.keys(providers).join(", ") || "none is configured";
    problems.push({ path: ["agent", "model"], allowed: `a model of a configured provider (${known})` });
  }
  const [voice] = config.transcription.model?.split("/") ?? [];
  if (voice !== undefined && providers[voice]?.kind !== "openai") {
    problems.push({ path: ["transcription", "model"], allowed: "a model of a configured provider of the kind openai" });
  }
  for (const name of ["telegram", "discord"] as const) {
    const { enabled, token } = config.channels[name];
    if (enabled === true && token === null) {
      problems.push({ path: ["channels", name, "token"], allowed: "a bot token, or enabled: false" });
    }
  }
  for (const [name, { kind, baseUrl }] of Object.entries(providers)) {
    if (kind === "openai" && baseUrl === null) {
      problems.push({ path: ["providers", name, "baseUrl"], allowed: AN_ADDRESS });
    }
  }
  return problems;
}

/** The default configuration, templates unresolved. */
export function defaultConfig(): Config {
  return configSchema.parse({});
}

/** The schema for editors, as JSON Schema. */
export function renderJsonSchema(): Record<string, unknown> {
  return { ...z.toJSONSchema(configSchema, { io: "input" }) };
}
