/**
 * The one schema of the configuration: every setting, its bounds and its default. It reads neither files nor the
 * environment, and a setting exists here only when something uses it. Invariant: `configSchema.parse({})` is the whole
 * default configuration, with `${NAME}` templates where a value comes from the environment.
 */
import { z } from "zod";
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

const HOUR_MS = 3_600_000;
const AN_OBJECT = { error: "an object" };

const redis = z.object(
  {
    /** Null: REDIS_URL, else the embedded server of this home. */
    url: textLike(
      /^(?:rediss?:\/\/\S+|\/\S+)$/,
      "a redis:// or rediss:// URL, the absolute path of a unix socket, or null",
    )
      .nullable()
      .default(null),
    prefix: textLike(/^[A-Za-z0-9_.-]{1,64}$/, "1 to 64 letters, digits, dots, dashes and underscores").default(
      "nanogate",
    ),
    fsync: oneOf(["everysec", "always"]).default("everysec"),
  },
  AN_OBJECT,
);

const gateway = z.object(
  {
    host: text("a host name or an address").default("127.0.0.1"),
    port: wholeNumber(0, 65_535).default(8765),
    /** `auto`: NANOGATE_TOKEN, else the one in the home folder, else none. */
    token: text('a text, "auto", or null').nullable().default("auto"),
    concurrency: wholeNumber(1, 1000).default(8),
    maxTurns: wholeNumberOrNull(1, 100_000).default(null),
    drainMs: durationMs(0, HOUR_MS).default(25_000),
    leaseMs: durationMs(300, HOUR_MS).default(15_000),
  },
  AN_OBJECT,
);

const agent = z.object(
  {
    model: textLike(/^(?:auto|demo|[^/\s]+\/\S+)$/, '"auto", "demo", or provider/model').default("auto"),
    maxIterations: wholeNumber(1, 10_000).default(50),
    requestTimeoutMs: durationMs(1, 24 * HOUR_MS).default(300_000),
    streamIdleTimeoutMs: durationMs(1, 24 * HOUR_MS).default(90_000),
    contextWindow: wholeNumber(1024, 100_000_000).default(200_000),
    maxOutputTokens: wholeNumber(1, 10_000_000).default(8192),
    queueMode: oneOf(["steer", "followup"]).default("steer"),
    debounceMs: durationMs(0, 60_000).default(0),
    unifiedSession: yesOrNo().default(false),
    toolResultMaxChars: wholeNumber(100, 10_000_000).default(16_000),
  },
  AN_OBJECT,
);

const provider = z.object(
  {
    kind: oneOf(["openai"]).default("openai"),
    apiKey: text("a text, or null").nullable().default(null),
    baseUrl: textLike(/^https?:\/\/[^\s/]+\S*$/i, "an http:// or https:// URL"),
  },
  AN_OBJECT,
);

const websocket = z.object({ enabled: yesOrNo().default(true), streaming: yesOrNo().default(true) }, AN_OBJECT);

/** The shape of the configuration, without the checks between fields. */
export const configSchema = z
  .object(
    {
      workspace: text("the path of a folder").default("~/.nanogate/workspace"),
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
          openai: { kind: "openai", apiKey: fromEnvironment("OPENAI_API_KEY"), baseUrl: "https://api.openai.com/v1" },
          openrouter: {
            kind: "openai",
            apiKey: fromEnvironment("OPENROUTER_API_KEY"),
            baseUrl: "https://openrouter.ai/api/v1",
          },
        }),
      channels: z.object({ websocket: websocket.prefault({}) }, AN_OBJECT).prefault({}),
      session: z.object({ fsync: oneOf(["turn", "exit"]).default("turn") }, AN_OBJECT).prefault({}),
      tools: z.object({ restrictToWorkspace: yesOrNo().default(true) }, AN_OBJECT).prefault({}),
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
