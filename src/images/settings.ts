import { randomBytes } from "node:crypto";
import type { Storage, Write } from "../storage/storage.ts";
import type { Directory } from "./directory.ts";
import { imageErrors } from "./errors.ts";
import { imageLimits } from "./image.ts";
import { show } from "../util/json.ts";
import type { Transform } from "./options.ts";
import * as store from "./store-settings.ts";

export interface VariantOptions {
  fit: "scale-down" | "contain" | "cover" | "crop" | "pad";
  width: number;
  height: number;
  metadata: "none" | "copyright" | "keep";
  blur?: number | undefined;
  browserTtlSeconds?: number | undefined;
}

/** A transform that has a name. */
export interface Variant {
  id: string;
  options: VariantOptions;
  neverRequireSignedUrls: boolean;
}

export interface SigningKey {
  name: string;
  value: string;
}

export interface ImageConfig {
  flexibleVariants: boolean;
  browserTtlSeconds: number | null;
}

export interface ImageSettings extends ImageConfig {
  /** False once something has been changed: what was derived from these settings holds no longer. */
  isCurrent: boolean;
  variants: Variant[];
  keys: SigningKey[];
}

/** The variant that every account has. It can be changed but not deleted. */
const publicVariant: Variant = {
  id: "public",
  options: { fit: "scale-down", width: 1366, height: 768, metadata: "none" },
  neverRequireSignedUrls: false,
};

export const variantsOf = (settings: ImageSettings): Variant[] =>
  settings.variants.some((variant) => variant.id === "public")
    ? settings.variants
    : [publicVariant, ...settings.variants];

export function transformOf({ options }: Variant): Transform {
  const { fit, width, height, metadata, blur } = options;
  return { fit, width, height, metadata, ...(blur === undefined ? {} : { blur }) };
}

/** Variants, signing keys and the configuration of images, for each account. */
export class ImageSettingsService {
  readonly #storage: Storage;
  readonly #directory: Directory;

  constructor(storage: Storage, directory: Directory) {
    this.#storage = storage;
    this.#directory = directory;
  }

  async variants(accountId: string): Promise<Variant[]> {
    return variantsOf(await this.#directory.settings(accountId));
  }

  async variant(accountId: string, id: string): Promise<Variant> {
    const found = (await this.variants(accountId)).find((variant) => variant.id === id);
    if (found === undefined) throw imageErrors.notFound("Variant");
    return found;
  }

  async createVariant(accountId: string, variant: Variant): Promise<Variant> {
    const variants = await this.variants(accountId);
    if (variants.some((each) => each.id === variant.id)) throw imageErrors.exists("Variant");
    if (variants.length >= imageLimits.variantsMax)
      throw imageErrors.invalidUpload(`Expected at most ${imageLimits.variantsMax} variants in an account`);
    return this.#putVariant(accountId, variant);
  }

  async editVariant(accountId: string, id: string, change: Partial<Omit<Variant, "id">>): Promise<Variant> {
    return this.#putVariant(accountId, { ...(await this.variant(accountId, id)), ...change });
  }

  async deleteVariant(accountId: string, id: string): Promise<void> {
    await this.variant(accountId, id);
    if (id === "public") throw imageErrors.invalidUpload("The variant public cannot be deleted");
    await this.#write(accountId, (trx) => store.removeVariant(trx, accountId, id));
  }

  /** The signing keys; the first one is made when they are first asked for. */
  async keys(accountId: string): Promise<SigningKey[]> {
    const { keys } = await this.#directory.settings(accountId);
    return keys.length > 0 ? keys : this.putKey(accountId, "default");
  }

  /** Adds a key; one of that name keeps its value. */
  async putKey(accountId: string, name: string): Promise<SigningKey[]> {
    const { keys } = await this.#directory.settings(accountId);
    const isNew = keys.every((key) => key.name !== name);
    if (!/^[\w. -]{1,20}$/.test(name))
      throw imageErrors.invalidUpload(
        `Expected 1 to 20 letters, digits, spaces, dots, - or _ for the name of a key but received ${show(name)}`,
      );
    if (isNew && keys.length >= imageLimits.keysMax)
      throw imageErrors.invalidUpload(`Expected at most ${imageLimits.keysMax} signing keys in an account`);
    if (isNew) await this.#write(accountId, (trx) => store.addKey(trx, accountId, newKey(name), Date.now()));
    return (await this.#directory.settings(accountId)).keys;
  }

  /** The last key is followed by a new one: without any, private images could not be seen. */
  async deleteKey(accountId: string, name: string): Promise<SigningKey[]> {
    const { keys } = await this.#directory.settings(accountId);
    if (keys.every((key) => key.name !== name)) throw imageErrors.notFound("Signing key");
    await this.#write(accountId, async (trx) => {
      await store.removeKey(trx, accountId, name);
      if (keys.length === 1) await store.addKey(trx, accountId, newKey("default"), Date.now());
    });
    return (await this.#directory.settings(accountId)).keys;
  }

  async config(accountId: string): Promise<ImageConfig> {
    return this.#directory.settings(accountId);
  }

  async editConfig(accountId: string, change: Partial<ImageConfig>): Promise<ImageConfig> {
    await this.#write(accountId, (trx) => store.putConfig(trx, accountId, change));
    return this.config(accountId);
  }

  async #putVariant(accountId: string, variant: Variant): Promise<Variant> {
    await this.#write(accountId, (trx) => store.putVariant(trx, accountId, variant, Date.now()));
    return variant;
  }

  async #write(accountId: string, work: (trx: Write) => Promise<void>): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await work(trx);
      changed({ kind: "image_settings", id: accountId });
    });
  }
}

const newKey = (name: string): SigningKey => ({ name, value: randomBytes(24).toString("base64url") });
