import { hash, timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { randomText } from "../../platform/util/ids.ts";

/** Longest chain of calls between scripts for one request; equals the public service's limit. */
export const hopsMax = 16;

/** The header that carries the hop count, as in the public service. */
export const viaName = "cf-ew-via";

/** State shared by all requests and runs that one request causes on this node. */
export interface CallTree {
  /** Set with the first outgoing request. */
  id: string | undefined;
  subrequests: number;
  /** Running scripts of the tree, without the first one. */
  running: number;
}

/** The origin of a script's request. */
export interface Via {
  /** Length of the chain of scripts that led to it. */
  hops: number;
  tree: CallTree;
}

export const newCallTree = (): CallTree => ({ id: undefined, subrequests: 0, running: 0 });

/** The Via of a request that is made on behalf of another. */
export const nextVia = (via: Via | undefined): Via => ({
  hops: (via?.hops ?? 0) + 1,
  tree: via?.tree ?? newCallTree(),
});

const treesMax = 20_000;
/** Length of a signature: 16 bytes in base64url. */
const macLength = 22;
const pattern = /^(\d{1,3})\.([\w-]{22})\.([\w-]{22})$/;

/**
 * Writes and reads the hop count header. It is signed for one host with a key that all nodes share, so a
 * request that returns to an installation through its public address keeps its count, and headers that others
 * made, or copied from a request to another host, are rejected.
 */
export class ViaHeader {
  readonly #key: string;
  readonly #trees = new LRUCache<string, CallTree>({ max: treesMax });

  constructor(key: string) {
    this.#key = key;
  }

  /** `host` is the destination of the request, with or without a port. */
  write({ hops, tree }: Via, host: string): string {
    if (tree.id === undefined) {
      tree.id = randomText(16, "base64url");
      this.#trees.set(tree.id, tree);
    }
    const content = `${hops}.${tree.id}`;
    return `${content}.${this.#mac(content, host)}`;
  }

  /** Undefined for a header with an invalid signature or for another host. */
  read(value: string, host: string): Via | undefined {
    const [, hops, id, mac] = pattern.exec(value) ?? [];
    if (hops === undefined || id === undefined || mac === undefined) return undefined;
    if (!timingSafeEqual(Buffer.from(mac), Buffer.from(this.#mac(`${hops}.${id}`, host)))) return undefined;
    let tree = this.#trees.get(id);
    // The tree of another node; this node counts separately.
    if (tree === undefined) this.#trees.set(id, (tree = { ...newCallTree(), id }));
    return { hops: Number(hops), tree };
  }

  /**
   * SHA-3 of the key and the text is a MAC, because SHA-3 does not allow length extension (FIPS 202). It takes 2 µs for
   * each request of a script or snippet; HMAC-SHA-256 takes 8 µs.
   */
  #mac(content: string, host: string): string {
    return hash("sha3-256", `${this.#key}${content}.${plainHost(host)}`, "base64url").slice(0, macLength);
  }
}

/** The canonical host, as for finding the zone: lower case, without port, brackets and trailing dot. */
const plainHost = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^(\[.*\]|[^:]*):\d+$/, "$1")
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
