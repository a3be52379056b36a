import { hash, timingSafeEqual } from "node:crypto";
import type { Span } from "../../platform/tracing/spans/span.ts";
import { LRUCache } from "lru-cache";
import { randomText } from "../../platform/util/ids.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";

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

/** How a request came about: the scripts that called each other before it. */
export interface Via {
  /** Length of the chain of scripts that led to it. */
  hops: number;
  tree: CallTree;
  /** The span that the request belongs to; undefined without traces, or for a request of another connection. */
  span?: Span | undefined;
}

/** The counters of all scripts that will run because of one request of a visitor. */
export const newCallTree = (): CallTree => ({ id: undefined, subrequests: 0, running: 0 });

/** The Via of a request that is made on behalf of another. */
export const nextVia = (via: Via | undefined): Via => ({
  hops: (via?.hops ?? 0) + 1,
  tree: via?.tree ?? newCallTree(),
});

const treesMax = 20_000;
const macsMax = 1000;
/** Length of a signature: 16 bytes in base64url. */
const macLength = 22;
const pattern = /^(0|[1-9]\d{0,2})\.([\w-]{22})\.([\w-]{22})$/;

/**
 * Writes and reads the hop count header. The count is signed for one host with a key that all nodes share, so a
 * request that returns to an installation through its public address keeps its count, and counts that others made,
 * or copied from a request to another host, are rejected. The id of the tree is random and not signed: a signed one
 * could be replayed to the same host all the same, and each request would need a signature of its own.
 */
export class ViaHeader {
  readonly #key: string;
  readonly #trees = new LRUCache<string, CallTree>(entriesMax(treesMax));
  /** Signatures by count and host. */
  readonly #macs = new LRUCache<string, string>(entriesMax(macsMax));

  constructor(key: string) {
    this.#key = key;
  }

  /** `host` is the destination of the request, with or without a port. */
  write({ hops, tree }: Via, host: string): string {
    if (tree.id === undefined) {
      tree.id = randomText(16, "base64url");
      this.#trees.set(tree.id, tree);
    }
    return `${hops}.${tree.id}.${this.#mac(hops, host)}`;
  }

  /** Undefined for a header with an invalid signature or for another host. */
  read(value: string, host: string): Via | undefined {
    const [, hops, id, mac] = pattern.exec(value) ?? [];
    if (hops === undefined || id === undefined || mac === undefined) return undefined;
    if (!timingSafeEqual(Buffer.from(mac), Buffer.from(this.#mac(Number(hops), host)))) return undefined;
    let tree = this.#trees.get(id);
    // The tree of another node; this node counts separately.
    if (tree === undefined) this.#trees.set(id, (tree = { ...newCallTree(), id }));
    return { hops: Number(hops), tree };
  }

  #mac(hops: number, host: string): string {
    const content = `${hops}.${plainHost(host)}`;
    let mac = this.#macs.get(content);
    if (mac === undefined) this.#macs.set(content, (mac = this.#sign(content)));
    return mac;
  }

  /** SHA-3 of the key and the text is a MAC, because SHA-3 does not allow length extension (FIPS 202). */
  #sign(content: string): string {
    return hash("sha3-256", `${this.#key}${content}`, "base64url").slice(0, macLength);
  }
}

/** The canonical host, as for finding the zone: lower case, without port, brackets and trailing dot. */
function plainHost(host: string): string {
  if (/^[a-z0-9.-]*[a-z0-9]$/.test(host)) return host;
  return host
    .toLowerCase()
    .replace(/^(\[.*\]|[^:]*):\d+$/, "$1")
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
}
