import { randomBytes } from "node:crypto";
import { lockAccount } from "../../../platform/storage/dialects.ts";
import type { Storage, Write } from "../../../platform/storage/storage.ts";
import type { ImageDirectory } from "../directory.ts";
import { imageErrors } from "../errors.ts";
import { imageLimits } from "../image.ts";
import { show } from "../../../platform/util/json.ts";
import type { Transform } from "../recipe/options.ts";
import * as store from "./store-settings.ts";
import { clock } from "../../../platform/timers/clock.ts";

export interface VariantOptions {
  fit: "scale-down" | "contain" | "cover" | "crop" | "pad";
  width: number;
  height: number;
  metadata: "none" | "copyright" | "keep";
  blur?: number | undefined;
  browserTtlSeconds?: number | undefined;
}

/** A named transform. */
export interface Variant {
  id: string;
  options: VariantOptions;
  neverRequireSignedUrls: boolean;
}

export type VariantEdit = Pick<Variant, "options"> & {
  neverRequireSignedUrls?: boolean | undefined;
};

export interface SigningKey {
  name: string;
  value: string;
}

export interface ImageConfig {
  flexibleVariants: boolean;
  browserTtlSeconds: number | null;
}

export interface ImageSettings extends ImageConfig {
  /** False once the settings have changed; caches derived from them are then invalid. */
  isCurrent: boolean;
  variants: Variant[];
  keys: SigningKey[];
}

/** The variant that every account has. It can be edited but not deleted. */
const publicVariant: Variant = {
  id: "public",
  options: { fit: "scale-down", width: 1366, height: 768, metadata: "none" },
  neverRequireSignedUrls: false,
};

export const variantsOf = (settings: ImageSettings): Variant[] =>
  settings.variants.some((variant) => variant.id === "public")
    ? settings.variants
    : [publicVariant, ...settings.variants];

function variantNamed(settings: ImageSettings, id: string): Variant {
  const found = variantsOf(settings).find((variant) => variant.id === id);
  if (found === undefined) throw imageErrors.notFound("Variant");
  return found;
}

export function transformOf({ options }: Variant): Transform {
  const { fit, width, height, metadata, blur } = options;
  return { fit, width, height, metadata, ...(blur === undefined ? {} : { blur }) };
}

/** Variants, signing keys and image settings of accounts. */
export class ImageSettingsService {
  readonly #storage: Storage;
  readonly #directory: ImageDirectory;

  constructor(storage: Storage, directory: ImageDirectory) {
    this.#storage = storage;
    this.#directory = directory;
  }

  async variants(accountId: string): Promise<Variant[]> {
    return variantsOf(await this.#directory.settings(accountId));
  }

  async variant(accountId: string, id: string): Promise<Variant> {
    return variantNamed(await this.#directory.settings(accountId), id);
  }

  async createVariant(accountId: string, variant: Variant): Promise<Variant> {
    return this.#change(accountId, async (trx, settings) => {
      const variants = variantsOf(settings);
      if (variants.some((each) => each.id === variant.id)) throw imageErrors.exists("Variant");
      if (variants.length >= imageLimits.variantsMax)
        throw imageErrors.invalidUpload(`Expected at most ${imageLimits.variantsMax} variants in an account`);
      await store.putVariant(trx, accountId, variant, clock.now());
      return variant;
    });
  }

  /** Fields that the edit omits stay. */
  async editVariant(accountId: string, id: string, edit: VariantEdit): Promise<Variant> {
    return this.#change(accountId, async (trx, settings) => {
      const before = variantNamed(settings, id);
      const variant = {
        id,
        options: edit.options,
        neverRequireSignedUrls: edit.neverRequireSignedUrls ?? before.neverRequireSignedUrls,
      };
      await store.putVariant(trx, accountId, variant, clock.now());
      return variant;
    });
  }

  async deleteVariant(accountId: string, id: string): Promise<void> {
    await this.#change(accountId, async (trx, settings) => {
      variantNamed(settings, id);
      if (id === "public") throw imageErrors.invalidUpload("The variant public cannot be deleted");
      await store.removeVariant(trx, accountId, id);
    });
  }

  /** The signing keys. The first one is created on first use. */
  async keys(accountId: string): Promise<SigningKey[]> {
    const { keys } = await this.#directory.settings(accountId);
    return keys.length > 0 ? keys : this.putKey(accountId, "default");
  }

  /** Adds a key. An existing key of that name keeps its value. */
  async putKey(accountId: string, name: string): Promise<SigningKey[]> {
    if (!/^[\w. -]{1,20}$/.test(name))
      throw imageErrors.invalidUpload(
        `Expected 1 to 20 letters, digits, spaces, dots, - or _ for the name of a key but received ${show(name)}`,
      );
    await this.#change(accountId, async (trx, { keys }) => {
      if (keys.some((key) => key.name === name)) return;
      if (keys.length >= imageLimits.keysMax)
        throw imageErrors.invalidUpload(`Expected at most ${imageLimits.keysMax} signing keys in an account`);
      await store.addKey(trx, accountId, newKey(name), clock.now());
    });
    return (await this.#directory.settings(accountId)).keys;
  }

  /** Deleting the last key creates a new one: without a key, private images could not be shown. */
  async deleteKey(accountId: string, name: string): Promise<SigningKey[]> {
    await this.#change(accountId, async (trx, { keys }) => {
      if (keys.every((key) => key.name !== name)) throw imageErrors.notFound("Signing key");
      await store.removeKey(trx, accountId, name);
      if (keys.length === 1) await store.addKey(trx, accountId, newKey("default"), clock.now());
    });
    return (await this.#directory.settings(accountId)).keys;
  }

  async config(accountId: string): Promise<ImageConfig> {
    return this.#directory.settings(accountId);
  }

  async editConfig(accountId: string, change: Partial<ImageConfig>): Promise<ImageConfig> {
    await this.#change(accountId, (trx) => store.putConfig(trx, accountId, change));
    return this.config(accountId);
  }

  /**
   * Changes of one account run one at a time on all nodes, so the settings that `work` reads stay current.
   */
  async #change<T>(accountId: string, work: (trx: Write, settings: ImageSettings) => Promise<T>): Promise<T> {
    return this.#storage.write(async (trx, changed) => {
      await lockAccount(this.#storage, trx, accountId);
      const result = await work(trx, await store.load(trx, accountId));
      changed({ kind: "image_settings", id: accountId });
      return result;
    });
  }
}

const newKey = (name: string): SigningKey => ({ name, value: randomBytes(24).toString("base64url") });
