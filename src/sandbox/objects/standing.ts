import { LRUCache } from "lru-cache";
import { entriesMax } from "../../platform/util/loading-cache.ts";
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

const prefix = "object.";
const pattern = /^object\.([0-9a-f]{32})\.([0-9a-f]{64})\.([0-9a-f]{32})\.[ab]?\d{1,15}$/;

/** An object that acts without a request: in its constructor, or for a message of a WebSocket. */
export interface ActingObject {
  namespace: string;
  id: string;
}

/** The key of an object in maps. */
export const objectKeyOf = ({ namespace, id }: ActingObject): string => `${namespace} ${id}`;

/**
 * Tokens by which objects act without a request. An object adds a number for each event, so that each event is a run of
 * its own. Nothing is kept for a token: its last part shows that this program made it.
 */
export class StandingTokens {
  readonly #key = randomBytes(32);
  /** By object. */
  readonly #known = new LRUCache<string, string>(entriesMax(10_000));

  tokenOf({ namespace, id }: ActingObject): string {
    const key = objectKeyOf({ namespace, id });
    let token = this.#known.get(key);
    if (token === undefined) {
      token = `${prefix}${namespace}.${id}.${this.#macOf(namespace, id)}`;
      this.#known.set(key, token);
    }
    return token;
  }

  read(token: string): ActingObject | undefined {
    const [, namespace, id, mac] = pattern.exec(token) ?? [];
    if (namespace === undefined || id === undefined || mac === undefined) return undefined;
    const isOwn = timingSafeEqual(Buffer.from(mac), Buffer.from(this.#macOf(namespace, id)));
    return isOwn ? { namespace, id } : undefined;
  }

  #macOf(namespace: string, id: string): string {
    return createHmac("sha256", this.#key).update(`${namespace} ${id}`).digest("hex").slice(0, 32);
  }
}
