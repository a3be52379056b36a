import type { Call } from "../core/client.ts";

/** An operation in other tools. A test compares it with the installed clients. */
interface Known {
  /** Method of the official clients. */
  client?: string;
  /** The path parameter that the TypeScript client takes as its first argument. */
  argument?: string;
  /** Resource of Terraform. */
  terraform?: string;
  wrangler?: (call: Call) => string;
}

const zones: Record<string, Known> = {
  "POST /zones": { client: "zones.create", terraform: "cloudflare_zone" },
  "PATCH /zones/{zone_id}": { client: "zones.edit" },
  "DELETE /zones/{zone_id}": { client: "zones.delete" },
  "PUT /zones/{zone_id}/activation_check": { client: "zones.activationCheck.trigger" },
  "PATCH /zones/{zone_id}/settings/{setting_id}": {
    client: "zones.settings.edit",
    argument: "setting_id",
    terraform: "cloudflare_zone_setting",
  },
};

const dns: Record<string, Known> = {
  "POST /zones/{zone_id}/dns_records": { client: "dns.records.create", terraform: "cloudflare_dns_record" },
  "PATCH /zones/{zone_id}/dns_records/{dns_record_id}": {
    client: "dns.records.edit",
    argument: "dns_record_id",
  },
  "PUT /zones/{zone_id}/dns_records/{dns_record_id}": {
    client: "dns.records.update",
    argument: "dns_record_id",
  },
  "DELETE /zones/{zone_id}/dns_records/{dns_record_id}": {
    client: "dns.records.delete",
    argument: "dns_record_id",
  },
  "POST /zones/{zone_id}/dns_records/batch": { client: "dns.records.batch" },
  "PATCH /zones/{zone_id}/dnssec": { client: "dns.dnssec.edit", terraform: "cloudflare_zone_dnssec" },
  "PATCH /zones/{zone_id}/dns_settings": {
    client: "dns.settings.zone.edit",
    terraform: "cloudflare_zone_dns_settings",
  },
};

/** Other tools' names of operations, by method and path as in openapi.json. */
export const clients: Readonly<Record<string, Known>> = { ...zones, ...dns };
