import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Accounts } from "../../control/accounts/accounts.ts";
import { reloadByForgetting } from "../../platform/storage/changes/listeners.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { isStorable, type Image } from "./image.ts";
import type { ImageSettings } from "./settings/settings.ts";
import * as settingsStore from "./settings/store-settings.ts";
import * as store from "./store.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";

/** An image's record. Caches derived from it check `isCurrent` instead of reading the record again. */
export interface Held {
  image: Image | undefined;
  isCurrent: boolean;
  /** Whether the image has an intermediate copy; undefined until checked. */
  hasIntermediateCopy: boolean | undefined;
}

/** The public name of an account in delivery URLs. */
export const accountHash = (accountId: string): string =>
  createHash("sha256").update(`account:${accountId}`).digest("base64url").slice(0, 22);

const imagesMax = 20_000;
const accountsMax = 5000;

/** Images and accounts that delivery has requested, kept in memory until they change. */
export class ImageDirectory {
  readonly #storage: Storage;
  readonly #accounts: Accounts;
  readonly #onForgotten: (image: Image) => void;
  readonly #images = new LRUCache<string, { held: Held; loaded: Promise<Held> }>({
    ...entriesMax(imagesMax),
  });
  readonly #settings = new LRUCache<
    string,
    { current: { isCurrent: boolean }; loaded: Promise<ImageSettings> }
  >({
    ...entriesMax(accountsMax),
  });
  #accountIds = new Map<string, string>();

  /** `onForgotten` is called with each image that changes while it is in memory. */
  constructor(storage: Storage, accounts: Accounts, onForgotten: (image: Image) => void = () => {}) {
    this.#onForgotten = onForgotten;
    this.#storage = storage;
    this.#accounts = accounts;
    storage.onChange(
      async (changes) => {
        for (const { kind, id, parentId } of changes) {
          if (kind === "image") this.#forgetImage(key(parentId!, id));
          else if (kind === "image_settings") this.#forgetSettings(id);
          else if (kind === "account") this.#forgetEverything();
        }
      },
      reloadByForgetting(() => this.#forgetEverything()),
    );
  }

  /** The account of a hash; undefined when unknown. */
  accountId(hash: string): string | undefined {
    if (this.#accountIds.size === 0)
      this.#accountIds = new Map(this.#accounts.list().map(({ id }) => [accountHash(id), id]));
    return this.#accountIds.get(hash);
  }

  async image(accountId: string, id: string): Promise<Held> {
    const name = key(accountId, id);
    const known = this.#images.get(name);
    if (known !== undefined) return known.loaded;
    // A change during the read finds this entry and invalidates it.
    const held: Held = { image: undefined, isCurrent: true, hasIntermediateCopy: undefined };
    const found = isStorable(id) ? store.find(this.#storage.read, accountId, id) : Promise.resolve(undefined);
    const loaded = found.then((image) => Object.assign(held, { image }));
    this.#images.set(name, { held, loaded });
    try {
      return await loaded;
    } catch (error) {
      this.#forgetImage(name);
      throw error;
    }
  }

  async settings(accountId: string): Promise<ImageSettings> {
    const known = this.#settings.get(accountId);
    if (known !== undefined) return known.loaded;
    const entry: { current: { isCurrent: boolean }; loaded: Promise<ImageSettings> } = {
      current: { isCurrent: true },
      loaded: settingsStore.load(this.#storage.read, accountId).then((settings) => {
        settings.isCurrent = entry.current.isCurrent;
        return (entry.current = settings);
      }),
    };
    this.#settings.set(accountId, entry);
    try {
      return await entry.loaded;
    } catch (error) {
      this.#forgetSettings(accountId);
      throw error;
    }
  }

  #forgetImage(name: string): void {
    const entry = this.#images.get(name);
    this.#images.delete(name);
    if (entry === undefined) return;
    entry.held.isCurrent = false;
    if (entry.held.image !== undefined) this.#onForgotten(entry.held.image);
  }

  #forgetSettings(accountId: string): void {
    const entry = this.#settings.get(accountId);
    if (entry !== undefined) entry.current.isCurrent = false;
    this.#settings.delete(accountId);
  }

  #forgetEverything(): void {
    this.#accountIds.clear();
    for (const name of [...this.#images.keys()]) this.#forgetImage(name);
    for (const accountId of [...this.#settings.keys()]) this.#forgetSettings(accountId);
  }
}

const key = (accountId: string, id: string): string => `${accountId}/${id}`;
