/**
 * Connections to the Bot API: the SDK's client over sockets of our own, so that half-open ones can be thrown away. It
 * repeats nothing. Invariant: after `renew` no call uses a socket of before.
 */
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { Api } from "grammy";

export interface Connection {
  /** The client of this moment; ask again after `renew`. */
  readonly api: Api;
  /** Throws the sockets away and begins with new ones. */
  renew(): void;
}

export interface ConnectionOptions {
  token: string;
  apiRoot: string;
  /** A call that takes longer fails. */
  timeoutSeconds: number;
}

/** The address as the SDK takes it. */
export function bareRoot(apiRoot: string): string {
  return apiRoot.replace(/\/+$/, "");
}

export function createConnection({ token, apiRoot, timeoutSeconds }: ConnectionOptions): Connection {
  const root = bareRoot(apiRoot);
  const open = () => {
    const agent = root.startsWith("https:") ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
    const api = new Api(token, { apiRoot: root, timeoutSeconds, baseFetchConfig: { agent, compress: true } });
    return { agent, api };
  };
  let current = open();
  return {
    get api() {
      return current.api;
    },
    renew: () => {
      const former = current;
      current = open();
      former.agent.destroy();
    },
  };
}
