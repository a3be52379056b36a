import { createHash, randomUUID } from "node:crypto";
import type { Blobs } from "../../platform/storage/blobs.ts";
import { writeNaming } from "../../platform/storage/blobs/write-with-content.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { buckets, scopeOf, type AssetFile, type AssetOwner, type ManifestEntry } from "./asset.ts";
import { assetErrors } from "./errors.ts";
import * as store from "./store.ts";
import { UploadTokens, type UploadClaims } from "./upload-tokens.ts";
import { clock } from "../../platform/timers/clock.ts";

/** One uploaded file. */
export interface AssetUpload {
  hash: string;
  contentType: string | null;
  bytes: Uint8Array;
}

/** The state of an upload session, as far as this node knows. */
interface Progress {
  scope: string;
  sizes: Map<string, number>;
  /** Hashes that were missing at the last check. */
  missing: string[];
  /** Hashes with a row whose bytes could not be found, and have not been uploaded again. */
  unreadable: Set<string>;
}

const progressMax = 200;
const checkedAtOnce = 100;
const writesAtOnce = 8;
const looksAtOnce = 16;
/** More files are looked up in a list of all files of their scope. */
const lookedUpMax = 1000;
/** The time of last use is updated only after this, so most sessions write nothing. */
const staleMs = 60 * 60 * 1000;

const unknownSession = (): Error => assetErrors.badToken("its upload session is no longer known");

/** The three steps of static assets: a session with a manifest, uploads of missing files, and completion. */
export class Assets {
  readonly #storage: Storage;
  readonly #blobs: Blobs;
  readonly #tokens: UploadTokens;
  readonly #progress = new Map<string, Progress>();

  constructor(storage: Storage, blobs: Blobs, secret: string) {
    this.#storage = storage;
    this.#blobs = blobs;
    this.#tokens = new UploadTokens(secret);
  }

  /** Begins an upload. Returns an upload token and the hashes to upload, or the completion token if none is missing. */
  async createSession(
    owner: AssetOwner,
    entries: readonly ManifestEntry[],
  ): Promise<{ jwt: string; buckets: string[][] }> {
    const scope = scopeOf(owner);
    const manifestId = manifestIdOf(scope, entries);
    const sizes = new Map(entries.map(({ hash, sizeBytes }) => [hash, sizeBytes]));
    const missing = new Map(sizes);
    const now = clock.now();
    // The manifest is locked first, as in the collector, so that they cannot deadlock.
    const files = await this.#storage.write(async (trx) => {
      await store.putManifest(trx, { id: manifestId, scope, entries: [...entries] }, now);
      const held = await store.useFiles(trx, scope, [...sizes.keys()], { now, staleOn: now - staleMs });
      for (const { hash, sizeBytes } of held) {
        if (sizes.get(hash) !== sizeBytes) throw assetErrors.size(hash, sizes.get(hash)!, sizeBytes);
        missing.delete(hash);
      }
      return held;
    });
    const unreadable = await this.#unreadable(scope, files);
    for (const { hash, sizeBytes } of unreadable) missing.set(hash, sizeBytes);
    if (unreadable.length === 0) this.#progress.get(manifestId)?.unreadable.clear();
    else
      this.#keepProgress(manifestId, {
        scope,
        sizes,
        missing: [...missing.keys()],
        unreadable: new Set(unreadable.map(({ hash }) => hash)),
      });
    const claims = { ...owner, manifestId };
    if (missing.size === 0) return { jwt: await this.#tokens.sign("asset-completion", claims), buckets: [] };
    return {
      jwt: await this.#tokens.sign("asset-upload", claims),
      buckets: buckets([...missing].map(([hash, sizeBytes]) => ({ hash, sizeBytes }))),
    };
  }

  async verifyUpload(token: string): Promise<UploadClaims> {
    return this.#tokens.verify("asset-upload", token);
  }

  /** The size of a hash in the session's manifest. */
  async expectedBytes(claims: UploadClaims, hash: string): Promise<number> {
    const size = (await this.#progressOf(claims)).sizes.get(hash);
    if (size === undefined) throw assetErrors.notRequested(hash);
    return size;
  }

  /**
   * Stores the files that `receive` yields. Returns the completion token once all files of the session's
   * manifest are stored.
   */
  async upload(
    claims: UploadClaims,
    receive: (keep: (upload: AssetUpload) => Promise<void>) => Promise<void>,
  ): Promise<string | undefined> {
    const { scope, sizes, unreadable } = await this.#progressOf(claims);
    const added = new Map<string, AssetFile>();
    const writing = new Set<Promise<unknown>>();
    const keep = async ({ hash, contentType, bytes }: AssetUpload): Promise<void> => {
      const expected = sizes.get(hash);
      if (expected === undefined) throw assetErrors.notRequested(hash);
      if (bytes.length !== expected) throw assetErrors.size(hash, expected, bytes.length);
      if (added.has(hash)) return;
      const blobKey = `assets/${scope}/${hash.slice(0, 2)}/${hash}-${randomUUID()}`;
      added.set(hash, { hash, sizeBytes: bytes.length, contentType, blobKey });
      const write: Promise<boolean> = this.#blobs.put(blobKey, bytes).then(() => writing.delete(write));
      write.catch(() => {}); // awaited below
      writing.add(write);
      if (writing.size >= writesAtOnce) await Promise.race(writing);
    };
    try {
      await receive(keep);
      await Promise.all(writing);
    } catch (error) {
      await Promise.allSettled(writing);
      await this.#discard([...added.values()]);
      throw error;
    }
    const now = clock.now();
    const discard = (): Promise<void> => this.#discard([...added.values()]);
    const kept = await writeNaming(this.#storage, discard, async (trx) => {
      if (!(await store.useManifest(trx, claims.manifestId, now))) throw unknownSession();
      return store.addFiles(trx, scope, [...added.values()], now);
    });
    // A concurrent upload stored the same content: keep that, unless its bytes are gone.
    const unkept = [...added.values()].filter(({ hash }) => !kept.has(hash));
    await this.#repair(scope, unkept);
    await this.#discard(unkept);
    for (const hash of added.keys()) unreadable.delete(hash);
    if (!(await this.#isComplete(claims))) return undefined;
    this.#progress.delete(claims.manifestId);
    return this.#tokens.sign("asset-completion", claims);
  }

  /** The manifest of a completion token (`assets.jwt`). Throws if it belongs to another script. */
  async completeUpload(owner: AssetOwner, completionJwt: string): Promise<string> {
    const claims = await this.#tokens.verify("asset-completion", completionJwt);
    const isOwn =
      claims.accountId === owner.accountId &&
      claims.namespaceId === owner.namespaceId &&
      claims.scriptName === owner.scriptName;
    if (!isOwn) throw assetErrors.completion(`it is for the script "${claims.scriptName}"`);
    // A session may begin before its script's first upload.
    if (claims.scriptId !== undefined && claims.scriptId !== owner.scriptId)
      throw assetErrors.completion(`it is for a script "${claims.scriptName}" that has been deleted`);
    return claims.manifestId;
  }

  /** Everything needed to serve a manifest; undefined if it does not exist. */
  async load(
    manifestId: string,
  ): Promise<{ entries: ManifestEntry[]; files: Map<string, AssetFile> } | undefined> {
    const manifest = await store.findManifest(this.#storage.read, manifestId);
    if (manifest === undefined) return undefined;
    const hashes = [...new Set(manifest.entries.map(({ hash }) => hash))];
    const files = await store.files(this.#storage.read, manifest.scope, hashes);
    return { entries: manifest.entries, files: new Map(files.map((file) => [file.hash, file])) };
  }

  async #progressOf(claims: UploadClaims): Promise<Progress> {
    const known = this.#progress.get(claims.manifestId);
    if (known !== undefined) return known;
    const manifest = await store.findManifest(this.#storage.read, claims.manifestId);
    if (manifest === undefined) throw unknownSession();
    const sizes = new Map(manifest.entries.map(({ hash, sizeBytes }) => [hash, sizeBytes]));
    const { scope } = manifest;
    return this.#keepProgress(claims.manifestId, {
      scope,
      sizes,
      missing: [...sizes.keys()],
      unreadable: new Set(),
    });
  }

  #keepProgress(manifestId: string, progress: Progress): Progress {
    const [oldest] = this.#progress.keys();
    if (this.#progress.size >= progressMax && oldest !== undefined) this.#progress.delete(oldest);
    this.#progress.set(manifestId, progress);
    return progress;
  }

  /** The files whose bytes are gone, for example with the disk of another node. */
  async #unreadable(scope: string, files: readonly AssetFile[]): Promise<AssetFile[]> {
    if (files.length > lookedUpMax) {
      const sought = new Map(files.map((file) => [file.blobKey, file]));
      for await (const { key } of this.#blobs.list(`assets/${scope}`)) {
        sought.delete(key);
        if (sought.size === 0) break;
      }
      return [...sought.values()];
    }
    const unreadable: AssetFile[] = [];
    for (let at = 0; at < files.length; at += looksAtOnce) {
      const some = files.slice(at, at + looksAtOnce);
      const found = await Promise.all(some.map(({ blobKey }) => this.#blobs.head(blobKey)));
      unreadable.push(...some.filter((_, index) => found[index] === undefined));
    }
    return unreadable;
  }

  /** Stores uploaded bytes again under the keys of their existing rows, which sites that are being served use. */
  async #repair(scope: string, uploads: readonly AssetFile[]): Promise<void> {
    if (uploads.length === 0) return;
    const hashes = uploads.map(({ hash }) => hash);
    const known = await store.files(this.#storage.read, scope, hashes);
    for (const { hash, blobKey } of await this.#unreadable(scope, known)) {
      const uploaded = uploads.find((upload) => upload.hash === hash)!;
      const blob = await this.#blobs.get(uploaded.blobKey);
      if (blob !== undefined) await this.#blobs.put(blobKey, blob.stream);
    }
  }

  /** Checks only as far as the first missing file, so that many small uploads do not each check all files. */
  async #isComplete(claims: UploadClaims): Promise<boolean> {
    const progress = await this.#progressOf(claims);
    if (progress.unreadable.size > 0) return false;
    while (progress.missing.length > 0) {
      const checked = progress.missing.slice(0, checkedAtOnce);
      const held = new Set(
        (await store.files(this.#storage.read, progress.scope, checked)).map(({ hash }) => hash),
      );
      progress.missing = progress.missing.filter((hash) => !held.has(hash));
      if (held.size < checked.length) return false;
    }
    // The cached state may be from an earlier session whose files have been removed.
    const all = [...progress.sizes.keys()];
    const held = await store.files(this.#storage.read, progress.scope, all);
    const hashes = new Set(held.map(({ hash }) => hash));
    progress.missing = all.filter((hash) => !hashes.has(hash));
    return progress.missing.length === 0;
  }

  async #discard(files: readonly AssetFile[]): Promise<void> {
    for (const { blobKey } of files) await this.#blobs.delete(blobKey);
  }
}

/** Derived from the content: the same manifest in the same scope is one row. */
function manifestIdOf(scope: string, entries: readonly ManifestEntry[]): string {
  const hash = createHash("sha256").update(scope);
  for (const { path, hash: file, sizeBytes } of [...entries].sort((a, b) => (a.path < b.path ? -1 : 1)))
    hash.update(`\n${path}\0${file}\0${sizeBytes}`);
  return hash.digest("hex").slice(0, 32);
}
