import { z } from "zod";
import { operationsFor } from "../../../control/api/operation.ts";
import { pictureErrorCodes } from "../api-errors.ts";
import { sidePixelsMax } from "../recipe/options.ts";
import type { ImageConfig, SigningKey, Variant, VariantOptions } from "./settings.ts";
import type { ImagesService } from "../image-services.ts";

/** The services that these operations use. */
interface Services {
  images: ImagesService;
}

const { operation } = operationsFor<Services>(pictureErrorCodes);

const base = "/accounts/{account_id}/images/v1";
const read = { scope: "account", permission: "images:read" } as const;
const edit = { scope: "account", permission: "images:edit" } as const;

const browserTtl = z.int().min(3600).max(31_536_000);
const VariantOptionsSchema = z.strictObject({
  fit: z.enum(["scale-down", "contain", "cover", "crop", "pad"]),
  width: z.int().min(1).max(sidePixelsMax),
  height: z.int().min(1).max(sidePixelsMax),
  metadata: z.enum(["none", "copyright", "keep"]),
  blur: z.number().min(1).max(250).optional(),
  browser_ttl: browserTtl.optional(),
});
const VariantSchema = z
  .strictObject({
    id: z.string().regex(/^[A-Za-z0-9_-]{1,99}$/),
    options: VariantOptionsSchema,
    neverRequireSignedURLs: z.boolean(),
  })
  .meta({ id: "ImageVariant", description: "A named transform" });
const VariantResultSchema = z.object({ variant: VariantSchema });
const VariantEditSchema = VariantSchema.omit({ id: true }).extend({
  neverRequireSignedURLs: z.boolean().default(false),
});
const ConfigSchema = z.object({ flexible_variants: z.boolean(), browser_ttl: z.int().nullable() });
const KeysSchema = z.object({ keys: z.array(z.object({ name: z.string(), value: z.string() })) });

const optionsOf = ({ browser_ttl, ...options }: z.output<typeof VariantOptionsSchema>): VariantOptions => ({
  ...options,
  browserTtlSeconds: browser_ttl,
});

function variantResource({ id, options, neverRequireSignedUrls }: Variant): z.input<typeof VariantSchema> {
  const { browserTtlSeconds, ...rest } = options;
  return {
    id,
    options: { ...rest, ...(browserTtlSeconds === undefined ? {} : { browser_ttl: browserTtlSeconds }) },
    neverRequireSignedURLs: neverRequireSignedUrls,
  };
}

const keysResource = (keys: readonly SigningKey[]): z.input<typeof KeysSchema> => ({
  keys: keys.map(({ name, value }) => ({ name, value })),
});
const configResource = (config: ImageConfig): z.input<typeof ConfigSchema> => ({
  flexible_variants: config.flexibleVariants,
  browser_ttl: config.browserTtlSeconds,
});

/** Operations on variants, signing keys, and the image settings of an account. */
export const settingsOperations = [
  operation({
    id: "image_variant_list",
    method: "GET",
    path: `${base}/variants`,
    summary: "List variants",
    access: read,
    result: z.object({ variants: z.record(z.string(), VariantSchema) }),
    async handle({ account, services }) {
      const variants = await services.images.settings.variants(account.id);
      return { variants: Object.fromEntries(variants.map((each) => [each.id, variantResource(each)])) };
    },
  }),
  operation({
    id: "image_variant_create",
    method: "POST",
    path: `${base}/variants`,
    summary: "Create a variant",
    access: edit,
    body: VariantEditSchema.extend({ id: VariantSchema.shape.id }),
    result: VariantResultSchema,
    async handle({ account, body, services }) {
      const variant = await services.images.settings.createVariant(account.id, {
        id: body.id,
        options: optionsOf(body.options),
        neverRequireSignedUrls: body.neverRequireSignedURLs,
      });
      return { variant: variantResource(variant) };
    },
  }),
  operation({
    id: "image_variant_get",
    method: "GET",
    path: `${base}/variants/{variant_name}`,
    summary: "Get a variant",
    access: read,
    result: VariantResultSchema,
    async handle({ account, params, services }) {
      const variant = await services.images.settings.variant(account.id, params["variant_name"]!);
      return { variant: variantResource(variant) };
    },
  }),
  operation({
    id: "image_variant_edit",
    method: "PATCH",
    path: `${base}/variants/{variant_name}`,
    summary: "Replace a variant's options",
    access: edit,
    body: VariantEditSchema.extend({ neverRequireSignedURLs: z.boolean().optional() }),
    result: VariantResultSchema,
    async handle({ account, params, body, services }) {
      const variant = await services.images.settings.editVariant(account.id, params["variant_name"]!, {
        options: optionsOf(body.options),
        neverRequireSignedUrls: body.neverRequireSignedURLs,
      });
      return { variant: variantResource(variant) };
    },
  }),
  operation({
    id: "image_variant_delete",
    method: "DELETE",
    path: `${base}/variants/{variant_name}`,
    summary: "Delete a variant",
    access: edit,
    result: z.object({}),
    async handle({ account, params, services }) {
      await services.images.settings.deleteVariant(account.id, params["variant_name"]!);
      return {};
    },
  }),
  operation({
    id: "image_key_list",
    method: "GET",
    path: `${base}/keys`,
    summary: "List the keys that sign URLs of private images",
    answersSecret: true,
    access: edit,
    result: KeysSchema,
    handle: async ({ account, services }) => keysResource(await services.images.settings.keys(account.id)),
  }),
  operation({
    id: "image_key_put",
    method: "PUT",
    path: `${base}/keys/{signing_key_name}`,
    summary: "Add a signing key; all keys are valid at the same time",
    access: edit,
    result: KeysSchema,
    async handle({ account, params, services }) {
      return keysResource(await services.images.settings.putKey(account.id, params["signing_key_name"]!));
    },
  }),
  operation({
    id: "image_key_delete",
    method: "DELETE",
    path: `${base}/keys/{signing_key_name}`,
    summary: "Delete a signing key; URLs that it signed become invalid",
    access: edit,
    result: KeysSchema,
    async handle({ account, params, services }) {
      return keysResource(await services.images.settings.deleteKey(account.id, params["signing_key_name"]!));
    },
  }),
  operation({
    id: "image_config_get",
    method: "GET",
    path: `${base}/config`,
    summary: "Get the image settings of an account",
    access: read,
    result: ConfigSchema,
    handle: async ({ account, services }) =>
      configResource(await services.images.settings.config(account.id)),
  }),
  operation({
    id: "image_config_edit",
    method: "PATCH",
    path: `${base}/config`,
    summary: "Set whether URLs may carry options, and how long browsers cache images",
    access: edit,
    body: z.strictObject({
      flexible_variants: z.boolean().optional(),
      browser_ttl: browserTtl.nullable().optional(),
    }),
    result: ConfigSchema,
    async handle({ account, body, services }) {
      const changed = await services.images.settings.editConfig(account.id, {
        ...(body.flexible_variants === undefined ? {} : { flexibleVariants: body.flexible_variants }),
        ...(body.browser_ttl === undefined ? {} : { browserTtlSeconds: body.browser_ttl }),
      });
      return configResource(changed);
    },
  }),
];
