import { bytesOf, type Bytes } from "../bytes.ts";
import type { DescribedResource } from "../product.ts";
import { fileNameFor } from "./names.ts";
import { HclExpression, type HclValue } from "./hcl.ts";
import {
  cronsOf,
  nameIn,
  NotExpressible,
  type TerraformContext,
  type TerraformResource,
} from "./terraform-resource.ts";
import { scriptResources } from "./terraform-scripts.ts";

type Fields = Record<string, HclValue>;
type Describe = (
  value: Fields,
  context: TerraformContext,
  resource: DescribedResource,
) => TerraformResource[] | TerraformResource;

/** How each product is written for the provider `cloudflare` 5, or the reason why it cannot be. */
export const terraformProducts: Readonly<Record<string, Describe | string>> = {
  zone: ({ name, type, paused }, { accountId, zoneId }) => ({
    type: "cloudflare_zone",
    attributes: { account: { id: accountId }, name, type, paused },
    importId: zoneId,
  }),
  zone_setting: ({ id, value }, { zone, zoneId }) => setting(nameIn(id), value!, zone, zoneId),
  dns_settings: (value, { zone }) => ({
    type: "cloudflare_zone_dns_settings",
    attributes: { zone_id: zone, ...value },
  }),
  dns_record: (value, { zone, zoneId }, { id }) => {
    const { content, data, settings, priority, comment, ...others } = value;
    return {
      type: "cloudflare_dns_record",
      attributes: {
        zone_id: zone,
        ...others,
        ...(data === null ? { content } : { data }),
        priority: priority ?? undefined,
        comment: comment ?? undefined,
        settings: Object.keys(settings as object).length === 0 ? undefined : settings,
      },
      importId: `${zoneId}/${id ?? ""}`,
    };
  },
  dnssec: ({ signed, multi_signer }, { zone, zoneId }) =>
    signed === true
      ? {
          type: "cloudflare_zone_dnssec",
          attributes: { zone_id: zone, status: "active", dnssec_multi_signer: multi_signer },
          importId: zoneId,
        }
      : [],
  kv_namespace: ({ title }, { accountId }, { id }) => ({
    type: "cloudflare_workers_kv_namespace",
    attributes: { account_id: accountId, title },
    importId: `${accountId}/${id ?? ""}`,
  }),
  kv_value: ({ namespace, key, value, metadata, expiration }, context) => {
    if (expiration !== null) throw new NotExpressible("the provider does not support an expiration");
    return {
      type: "cloudflare_workers_kv",
      attributes: {
        account_id: context.accountId,
        namespace_id: context.idOf("kv_namespace", nameIn(namespace)),
        key_name: key,
        value: terraformText(value as unknown as Bytes),
        metadata: metadata === null ? undefined : JSON.stringify(metadata),
      },
    };
  },
  d1_database: ({ name }, { accountId }, { id }) => ({
    type: "cloudflare_d1_database",
    attributes: { account_id: accountId, name },
    importId: `${accountId}/${id ?? ""}`,
  }),
  queue: ({ name, settings }, { accountId }, { id }) => ({
    type: "cloudflare_queue",
    attributes: { account_id: accountId, queue_name: name, settings },
    importId: `${accountId}/${id ?? ""}`,
  }),
  queue_consumer: ({ queue, type, script, dead_letter_queue, settings }, context) => ({
    type: "cloudflare_queue_consumer",
    attributes: {
      account_id: context.accountId,
      queue_id: context.idOf("queue", nameIn(queue)),
      type,
      script_name: script ?? undefined,
      dead_letter_queue: dead_letter_queue === "" ? undefined : dead_letter_queue,
      settings: withoutNulls(settings as Fields),
    },
  }),
  image_variant: ({ id, options, neverRequireSignedURLs }, { accountId }) => ({
    type: "cloudflare_image_variant",
    attributes: { account_id: accountId, id, options, never_require_signed_urls: neverRequireSignedURLs },
    importId: `${accountId}/${nameIn(id)}`,
  }),
  image: "the provider uploads no files",
  dispatch_namespace: ({ name }, { accountId }) => ({
    type: "cloudflare_workers_for_platforms_dispatch_namespace",
    attributes: { account_id: accountId, name },
    importId: `${accountId}/${nameIn(name)}`,
  }),
  dispatch_script: "customers' scripts are uploaded by the platform's own program",
  script: (value, context) => scriptResources(value, context),
  workflow: ({ name, class_name, script_name, schedules }, { accountId }) => ({
    type: "cloudflare_workflow",
    attributes: {
      account_id: accountId,
      workflow_name: name,
      class_name,
      script_name,
      schedules: cronsOf(schedules),
    },
    importId: `${accountId}/${nameIn(name)}`,
  }),
  route: ({ pattern, script }, { zone, zoneId }, { id }) => ({
    type: "cloudflare_workers_route",
    attributes: { zone_id: zone, pattern, script: script ?? undefined },
    importId: `${zoneId}/${id ?? ""}`,
  }),
  domain: ({ hostname, service }, { zone, accountId }, { id }) => ({
    type: "cloudflare_workers_custom_domain",
    attributes: { account_id: accountId, zone_id: zone, hostname, service },
    importId: `${accountId}/${id ?? ""}`,
  }),
  ruleset: ({ phase, rules }, { zone, zoneId }, { id }) => ({
    type: "cloudflare_ruleset",
    attributes: { zone_id: zone, kind: "zone", name: "default", phase, rules },
    importId: `zones/${zoneId}/${id ?? ""}`,
  }),
  snippet: ({ name, main_module, modules }, context) => ({
    type: "cloudflare_snippet",
    attributes: {
      zone_id: context.zone,
      snippet_name: name,
      metadata: { main_module },
      files: (modules as unknown as { name: string; content: Bytes }[]).map((module) => {
        const content = context.file(
          fileNameFor(`${context.zoneId}/${nameIn(name)}/${module.name}`, ".js"),
          bytesOf(module.content),
        );
        return { name: module.name, content: new HclExpression(`file(${content.code})`) };
      }),
    },
    importId: `${context.zoneId}/${nameIn(name)}`,
  }),
  snippet_rules: ({ rules }, { zone, zoneId }) => ({
    type: "cloudflare_snippet_rules",
    attributes: { zone_id: zone, rules },
    importId: zoneId,
  }),
};

function setting(id: string, value: HclValue, zone: HclExpression, zoneId: string): TerraformResource {
  if (id === "bot_management") throw new NotExpressible("the provider has another form of this setting");
  if (id === "smart_routing")
    return { type: "cloudflare_argo_smart_routing", attributes: { zone_id: zone, value }, importId: zoneId };
  if (id === "universal_ssl")
    return {
      type: "cloudflare_universal_ssl_setting",
      attributes: { zone_id: zone, enabled: value === "on" },
      importId: zoneId,
    };
  return {
    type: "cloudflare_zone_setting",
    attributes: { zone_id: zone, setting_id: id, value },
    importId: `${zoneId}/${id}`,
  };
}

/** Terraform normalizes its strings, so other texts would change. */
export function terraformText(bytes: Bytes): string {
  if ("base64" in bytes) throw new NotExpressible("the value is not text");
  if (bytes.text !== bytes.text.normalize("NFC")) throw new NotExpressible("the value would be normalized");
  return bytes.text;
}

const withoutNulls = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
