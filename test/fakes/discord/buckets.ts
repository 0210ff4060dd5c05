/**
 * Rate limits of the fake Discord: one bucket for each route and channel, and one for the bot. Fixed windows that begin with
 * their first call. Invariant: a call that comes although an answer had said "none left" is a violation; one that comes
 * too early without having been told is only refused.
 */

export interface Limit {
  count: number;
  perMs: number;
}

/** A call as the buckets see it. `major`: the channel or webhook in its path. */
export interface Asked {
  method: string;
  route: string;
  major: string;
}

export interface Verdict {
  isRefused: boolean;
  isGlobal: boolean;
  headers: Record<string, string>;
  /** To be called when the answer has left. */
  told: () => void;
}

interface Bucket {
  endsMs: number;
  left: number;
  /** When the caller was told that none is left. */
  toldMs: number | null;
}

/** An answer is on its way for so long; what was asked meanwhile knew nothing of it. */
const ON_ITS_WAY_MS = 40;
/** Resets are said in whole milliseconds. */
const ROUNDING_MS = 2;

const GLOBAL = "global";

export class Buckets {
  readonly #buckets = new Map<string, Bucket>();
  /** Calls that the caller knew to be too many. */
  readonly violations: string[] = [];
  /** All refused calls. */
  readonly refused: string[] = [];

  constructor(
    private readonly limitOf: (asked: Asked) => Limit | null,
    private readonly globalLimit: Limit,
  ) {}

  take(asked: Asked): Verdict {
    const now = performance.now();
    const isExempt = asked.route.startsWith("/interactions") || asked.route.startsWith("/webhooks");
    const overall = isExempt ? null : this.#bucket(GLOBAL, this.globalLimit, now);
    if (overall !== null && overall.left <= 0) return this.#refuse(asked, overall, now, null);
    const limit = this.limitOf(asked);
    if (overall !== null) overall.left -= 1;
    if (limit === null) return { isRefused: false, isGlobal: false, headers: {}, told: () => {} };
    const bucket = this.#bucket(nameOf(asked), limit, now);
    if (bucket.left <= 0) return this.#refuse(asked, bucket, now, limit);
    bucket.left -= 1;
    const told = () => {
      if (bucket.left <= 0) bucket.toldMs ??= performance.now();
    };
    return { isRefused: false, isGlobal: false, headers: headersOf(asked, limit, bucket, now), told };
  }

  /** From now on refuses what was asked, for so long; null: everything. */
  park(asked: Asked | null, ms: number): void {
    const name = asked === null ? GLOBAL : nameOf(asked);
    this.#buckets.set(name, { endsMs: performance.now() + ms, left: 0, toldMs: null });
  }

  #bucket(name: string, { count, perMs }: Limit, now: number): Bucket {
    const known = this.#buckets.get(name);
    if (known !== undefined && now < known.endsMs) return known;
    const fresh: Bucket = { endsMs: now + perMs, left: count, toldMs: null };
    this.#buckets.set(name, fresh);
    return fresh;
  }

  #refuse(asked: Asked, bucket: Bucket, now: number, limit: Limit | null): Verdict {
    const what = nameOf(asked);
    this.refused.push(what);
    const isKnown = bucket.toldMs !== null && now - bucket.toldMs > ON_ITS_WAY_MS;
    if (isKnown && bucket.endsMs - now > ROUNDING_MS) this.violations.push(what);
    const waitS = Math.ceil(Math.max(1, bucket.endsMs - now)) / 1000;
    const wait = { "retry-after": String(waitS), "x-ratelimit-scope": limit === null ? "global" : "user" };
    const told = () => {
      bucket.toldMs ??= performance.now();
    };
    if (limit === null)
      return { isRefused: true, isGlobal: true, headers: { ...wait, "x-ratelimit-global": "true" }, told };
    return { isRefused: true, isGlobal: false, headers: { ...headersOf(asked, limit, bucket, now), ...wait }, told };
  }
}

const nameOf = ({ method, route, major }: Asked): string => `${method} ${route} ${major}`.trim();

function headersOf({ method, route }: Asked, limit: Limit, bucket: Bucket, now: number): Record<string, string> {
  const waitS = Math.ceil(Math.max(1, bucket.endsMs - now)) / 1000;
  return {
    "x-ratelimit-bucket": Buffer.from(`${method}${route}`).toString("base64url").slice(0, 32),
    "x-ratelimit-limit": String(limit.count),
    "x-ratelimit-remaining": String(Math.max(0, bucket.left)),
    "x-ratelimit-reset": (Date.now() / 1000 + waitS).toFixed(3),
    "x-ratelimit-reset-after": waitS.toFixed(3),
  };
}

/** Discord's limits as they are seen in practice, for the calls that matter here. */
export const USUAL_LIMITS: Readonly<Record<string, Limit>> = {
  "POST /channels/:channel/messages": { count: 5, perMs: 5000 },
  "PATCH /channels/:channel/messages/:message": { count: 5, perMs: 5000 },
  "DELETE /channels/:channel/messages/:message": { count: 5, perMs: 1000 },
  "POST /channels/:channel/typing": { count: 5, perMs: 5000 },
  "PUT /channels/:channel/messages/:message/reactions/:emoji/@me": { count: 1, perMs: 250 },
  "DELETE /channels/:channel/messages/:message/reactions/:emoji/@me": { count: 1, perMs: 250 },
  "GET /channels/:channel/messages": { count: 50, perMs: 1000 },
};
