import { hash, createHash, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { LRUCache } from "lru-cache";
import { ofWriting } from "../errors.ts";
import { checkSize, type Focus, type MoreFormats, type Probe } from "../image.ts";
import { probe } from "../input/probe.ts";
import type { Results } from "../results/results.ts";
import { checkedImage } from "../input/format-check.ts";
import { SingleFlight } from "../results/single-flight.ts";
import { asTransformationError, transformationErrors } from "./errors.ts";
import type { ReceivedResponse } from "./exchange.ts";
import type { Send } from "../../../edge/origin/outbound.ts";
import { fetchOriginal } from "./fetch-original.ts";
import { freshnessOf } from "./freshness.ts";
import { entriesMax } from "../../../platform/util/loading-cache.ts";
import { clock } from "../../../platform/timers/clock.ts";
import type { PictureOwner } from "../../../workers/runtime/runtime-options.ts";

/** A picture of an origin, stored among the results. */
export interface Original {
  /** The account whose share of the engine its transformations use. */
  accountId: string;
  /** Its folder in the results, and its name there. */
  folder: string;
  name: string;
  path: string;
  probe: Probe & { sizeBytes: number };
  sha256: string;
  /** The origin's Cache-Control header. */
  cacheControl: string | undefined;
  lastModified: string | undefined;
  receivedOn: number;
  focus: Focus | null;
  /** False when the origin now has another picture at this URL. */
  isCurrent: boolean;
  /** False when the origin forbids caching; results made of it are not cached either. */
  isStorable: boolean;
}

export interface FreshOriginal {
  original: Original;
  freshUntil: number;
}

/** A picture to fetch. */
export interface WantedOriginal {
  owner: PictureOwner;
  url: URL;
  /** Headers for the origin. */
  headers: readonly string[];
  send: Send;
  signal: AbortSignal;
}

interface Known extends FreshOriginal {
  etag: string | undefined;
}

const knownMax = 20_000;
const fetchesMax = 64;
/** Per zone, and per account, so that the visitors of none can use all fetches. */
const fetchesOfOwnerMax = 16;
const fetchesOfAccountMax = 48;
/** How long "not storable" is remembered, to avoid fetching such pictures twice. */
const unstorableMs = 60_000;

/** The name of a picture at a URL, for an owner, as an origin sends it to a request with these headers. */
export const originalKey = ({
  owner,
  url,
  headers,
}: Pick<WantedOriginal, "owner" | "url" | "headers">): string =>
  hash("sha256", [owner.id, url.href, ...headers].join("\n"));

/**
 * Pictures of origins: fetched once for concurrent requests, cached as the origin allows, then revalidated.
 */
export class Originals {
  readonly #results: Results;
  readonly #folder: string;
  readonly #more: MoreFormats;
  readonly #known = new LRUCache<string, Known>({
    ...entriesMax(knownMax),
    dispose: ({ original }, _key, reason) => {
      if (reason !== "evict") original.isCurrent = false;
    },
  });
  readonly #unstorable = new LRUCache<string, true>({ ...entriesMax(knownMax), ttl: unstorableMs });
  readonly #flights = new SingleFlight<Original | undefined>();
  readonly #fetchesOf = new Map<string, number>();
  #fetches = 0;
  #made: Promise<unknown> | undefined;

  /** `folder` holds files that are being received, on the file system of the results. */
  constructor(results: Results, folder: string, more: MoreFormats) {
    this.#results = results;
    this.#folder = folder;
    this.#more = { ...more, svg: false };
  }

  /** Gives `use` the picture. Rejects with a DomainError. */
  async use<T>(wanted: WantedOriginal, use: (original: Original) => Promise<T>): Promise<T> {
    const { owner, url, headers, send, signal } = wanted;
    const key = originalKey(wanted);
    const known = await this.#fresh(key);
    if (known !== undefined) return use(known);
    if (!this.#unstorable.has(key)) {
      const work = (): Promise<Original | undefined> => this.#refresh(wanted, key);
      const original = await this.#flights.run(key, work, signal);
      if (original !== undefined) return use(original);
    }
    return this.#counted(owner, () =>
      fetchOriginal(url, headers, send, async (answer) => {
        const received = await this.#receive(answer);
        try {
          return await use(await this.#read(wanted, received, answer, false));
        } finally {
          await rm(received.file, { force: true });
        }
      }),
    ).catch((error: unknown) => {
      throw asTransformationError(error);
    });
  }

  /** A picture that is here, and fresh. */
  async known(key: string): Promise<FreshOriginal | undefined> {
    const known = this.#known.get(key);
    if (known === undefined || known.freshUntil <= clock.now()) return undefined;
    return (await this.#isThere(known)) ? known : undefined;
  }

  async #fresh(key: string): Promise<Original | undefined> {
    return (await this.known(key))?.original;
  }

  /** The file may have been evicted. */
  async #isThere({ original }: Known): Promise<boolean> {
    return (await this.#results.file(original.name)) !== undefined;
  }

  /** Revalidates the picture at the origin, or fetches it. Undefined for one that must not be stored. */
  async #refresh(wanted: WantedOriginal, key: string): Promise<Original | undefined> {
    const { owner, url, headers, send } = wanted;
    const known = this.#known.get(key);
    const isThere = known !== undefined && (await this.#isThere(known));
    const conditions = isThere ? conditionsOf(known) : [];
    try {
      return await this.#counted(owner, () =>
        fetchOriginal(url, [...headers, ...conditions], send, async (answer) => {
          const { isStorable, seconds } = freshnessOf(answer.headers, clock.now());
          const freshUntil = clock.now() + seconds * 1000;
          if (answer.status === 304 && isThere) {
            this.#known.set(key, { ...known, freshUntil }, { noDisposeOnSet: true });
            return known.original;
          }
          if (answer.status !== 200) throw transformationErrors.originFault(answer.status);
          if (!isStorable) {
            this.#unstorable.set(key, true);
            this.#known.delete(key);
            return undefined;
          }
          const received = await this.#receive(answer);
          const original = await this.#keep(wanted, received, answer, known?.original);
          const etag = answer.headers.get("etag");
          this.#known.set(
            key,
            { original, freshUntil, etag },
            { noDisposeOnSet: known?.original === original },
          );
          return original;
        }),
      );
    } catch (error) {
      throw asTransformationError(error);
    }
  }

  async #counted<T>({ id, accountId }: PictureOwner, work: () => Promise<T>): Promise<T> {
    const all = this.#fetchesOf;
    const [zone, account] = [`zone ${id}`, `account ${accountId}`];
    if (
      this.#fetches >= fetchesMax ||
      (all.get(zone) ?? 0) >= fetchesOfOwnerMax ||
      (all.get(account) ?? 0) >= fetchesOfAccountMax
    )
      throw transformationErrors.busy();
    const add = (name: string, change: number): void => {
      const count = (all.get(name) ?? 0) + change;
      if (count === 0) all.delete(name);
      else all.set(name, count);
    };
    this.#fetches += 1;
    add(zone, 1);
    add(account, 1);
    try {
      return await work();
    } finally {
      this.#fetches -= 1;
      add(zone, -1);
      add(account, -1);
    }
  }

  async #receive(answer: ReceivedResponse): Promise<{ file: string; sha256: string; sizeBytes: number }> {
    // First deletes files that a killed process left behind.
    await (this.#made ??= rm(this.#folder, { recursive: true, force: true })
      .then(() => mkdir(this.#folder, { recursive: true, mode: 0o700 }))
      .catch((error: unknown) => {
        this.#made = undefined;
        throw ofWriting(error);
      }));
    const file = join(this.#folder, randomUUID());
    const sha256 = createHash("sha256");
    let sizeBytes = 0;
    const count = (chunk: Uint8Array): void => {
      sizeBytes += chunk.length;
      sha256.update(chunk);
    };
    try {
      await pipeline(
        checkedImage(answer as AsyncIterable<Uint8Array>, this.#more, count),
        createWriteStream(file, { mode: 0o600, flags: "wx" }),
      );
      return { file, sha256: sha256.digest("hex"), sizeBytes };
    } catch (error) {
      await rm(file, { force: true });
      const isCut = (error as NodeJS.ErrnoException).code === "ERR_STREAM_PREMATURE_CLOSE";
      throw isCut ? transformationErrors.broken() : ofWriting(error);
    }
  }

  async #read(
    wanted: WantedOriginal,
    { file, sha256, sizeBytes }: { file: string; sha256: string; sizeBytes: number },
    { headers }: ReceivedResponse,
    isStorable: boolean,
  ): Promise<Original> {
    const found = await probe(file);
    checkSize(found);
    const folder = originalKey(wanted);
    return {
      accountId: wanted.owner.accountId,
      folder,
      name: `${folder}/${sha256.slice(0, 32)}`,
      path: file,
      probe: { ...found, sizeBytes },
      sha256,
      cacheControl: headers.get("cache-control"),
      lastModified: headers.get("last-modified"),
      receivedOn: clock.now(),
      focus: null,
      isCurrent: true,
      isStorable,
    };
  }

  /**
   * Adds a received picture to the results. When it replaces another one, the results of the old one are
   * deleted.
   */
  async #keep(
    wanted: WantedOriginal,
    received: { file: string; sha256: string; sizeBytes: number },
    answer: ReceivedResponse,
    before: Original | undefined,
  ): Promise<Original> {
    try {
      const original = await this.#read(wanted, received, answer, true);
      if (before !== undefined && before.sha256 !== original.sha256) {
        before.isCurrent = false;
        await this.#results.purge(original.folder);
      }
      original.path = this.#results.path(original.name);
      await mkdir(dirname(original.path), { recursive: true, mode: 0o700 });
      await rename(received.file, original.path);
      this.#results.adopt(original.name, received.sizeBytes, () => true);
      return original;
    } catch (error) {
      await rm(received.file, { force: true });
      throw ofWriting(error);
    }
  }
}

function conditionsOf({ original, etag }: Known): string[] {
  if (etag !== undefined) return ["If-None-Match", etag];
  return original.lastModified === undefined ? [] : ["If-Modified-Since", original.lastModified];
}
