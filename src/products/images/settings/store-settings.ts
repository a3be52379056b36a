import type { Read, Write } from "../../../platform/storage/storage.ts";
import type { ImageConfig, ImageSettings, SigningKey, Variant, VariantOptions } from "./settings.ts";

export async function load(read: Read, accountId: string): Promise<ImageSettings> {
  const settings = await read
    .selectFrom("image_settings")
    .selectAll()
    .where("account_id", "=", accountId)
    .executeTakeFirst();
  const variants = await read
    .selectFrom("image_variants")
    .selectAll()
    .where("account_id", "=", accountId)
    .orderBy("created_on")
    .orderBy("id")
    .execute();
  const keys = await read
    .selectFrom("image_keys")
    .selectAll()
    .where("account_id", "=", accountId)
    .orderBy("created_on")
    .orderBy("name")
    .execute();
  return {
    isCurrent: true,
    flexibleVariants: settings?.flexible_variants !== 0,
    browserTtlSeconds: settings?.browser_ttl ?? null,
    variants: variants.map((row) => ({
      id: row.id,
      options: JSON.parse(row.options) as VariantOptions,
      neverRequireSignedUrls: row.never_require_signed_urls === 1,
    })),
    keys: keys.map(({ name, value }) => ({ name, value })),
  };
}

export async function putVariant(
  trx: Write,
  accountId: string,
  variant: Variant,
  now: number,
): Promise<void> {
  const columns = {
    options: JSON.stringify(variant.options),
    never_require_signed_urls: variant.neverRequireSignedUrls ? (1 as const) : (0 as const),
  };
  await trx
    .insertInto("image_variants")
    .values({ account_id: accountId, id: variant.id, created_on: now, ...columns })
    .onConflict((conflict) => conflict.columns(["account_id", "id"]).doUpdateSet(columns))
    .execute();
}

export async function removeVariant(trx: Write, accountId: string, id: string): Promise<void> {
  await trx.deleteFrom("image_variants").where("account_id", "=", accountId).where("id", "=", id).execute();
}

export async function addKey(trx: Write, accountId: string, key: SigningKey, now: number): Promise<void> {
  await trx
    .insertInto("image_keys")
    .values({ account_id: accountId, name: key.name, value: key.value, created_on: now })
    .execute();
}

export async function removeKey(trx: Write, accountId: string, name: string): Promise<void> {
  await trx.deleteFrom("image_keys").where("account_id", "=", accountId).where("name", "=", name).execute();
}

/** Updates the given fields. */
export async function putConfig(
  trx: Write,
  accountId: string,
  { flexibleVariants, browserTtlSeconds }: Partial<ImageConfig>,
): Promise<void> {
  const flexible = (flexibleVariants ?? true) ? (1 as const) : (0 as const);
  const ttl = browserTtlSeconds ?? null;
  await trx
    .insertInto("image_settings")
    .values({ account_id: accountId, flexible_variants: flexible, browser_ttl: ttl })
    .onConflict((conflict) =>
      conflict.column("account_id").doUpdateSet((eb) => ({
        flexible_variants:
          flexibleVariants === undefined ? eb.ref("image_settings.flexible_variants") : flexible,
        browser_ttl: browserTtlSeconds === undefined ? eb.ref("image_settings.browser_ttl") : ttl,
      })),
    )
    .execute();
}
