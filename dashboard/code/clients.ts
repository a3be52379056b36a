import type { Call } from "../core/client.ts";
import { quote, word } from "./quote.ts";

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
type Operations = Record<string, Known>;

const zone = "/zones/{zone_id}";
const account = "/accounts/{account_id}";

const zones: Operations = {
  "POST /zones": { client: "zones.create", terraform: "cloudflare_zone" },
  [`PATCH ${zone}`]: { client: "zones.edit" },
  [`DELETE ${zone}`]: { client: "zones.delete" },
  [`PUT ${zone}/activation_check`]: { client: "zones.activationCheck.trigger" },
};

const dns: Operations = {
  [`POST ${zone}/dns_records`]: { client: "dns.records.create", terraform: "cloudflare_dns_record" },
  [`PUT ${zone}/dns_records/{dns_record_id}`]: { client: "dns.records.update", argument: "dns_record_id" },
  [`PATCH ${zone}/dns_records/{dns_record_id}`]: { client: "dns.records.edit", argument: "dns_record_id" },
  [`DELETE ${zone}/dns_records/{dns_record_id}`]: { client: "dns.records.delete", argument: "dns_record_id" },
  [`POST ${zone}/dns_records/batch`]: { client: "dns.records.batch" },
  [`PATCH ${zone}/dnssec`]: { client: "dns.dnssec.edit", terraform: "cloudflare_zone_dnssec" },
  [`PATCH ${zone}/dns_settings`]: {
    client: "dns.settings.zone.edit",
    terraform: "cloudflare_zone_dns_settings",
  },
  [`POST ${zone}/secondary_dns/outgoing`]: {
    client: "dns.zoneTransfers.outgoing.create",
    terraform: "cloudflare_dns_zone_transfers_outgoing",
  },
  [`PUT ${zone}/secondary_dns/outgoing`]: { client: "dns.zoneTransfers.outgoing.update" },
  [`POST ${zone}/secondary_dns/outgoing/force_notify`]: { client: "dns.zoneTransfers.outgoing.forceNotify" },
  [`POST ${account}/secondary_dns/peers`]: {
    client: "dns.zoneTransfers.peers.create",
    terraform: "cloudflare_dns_zone_transfers_peer",
  },
  [`POST ${account}/secondary_dns/tsigs`]: {
    client: "dns.zoneTransfers.tsigs.create",
    terraform: "cloudflare_dns_zone_transfers_tsig",
  },
  [`POST ${account}/secondary_dns/acls`]: {
    client: "dns.zoneTransfers.acls.create",
    terraform: "cloudflare_dns_zone_transfers_acl",
  },
};

const traffic: Operations = {
  [`PUT ${zone}/rulesets/phases/{phase}/entrypoint`]: {
    client: "rulesets.phases.update",
    argument: "phase",
    terraform: "cloudflare_ruleset",
  },
  [`POST ${zone}/rulesets`]: { client: "rulesets.create", terraform: "cloudflare_ruleset" },
  [`POST ${zone}/rulesets/{ruleset_id}/rules`]: { client: "rulesets.rules.create", argument: "ruleset_id" },
  [`PATCH ${zone}/rulesets/{ruleset_id}/rules/{rule_id}`]: {
    client: "rulesets.rules.edit",
    argument: "rule_id",
  },
  [`DELETE ${zone}/rulesets/{ruleset_id}/rules/{rule_id}`]: {
    client: "rulesets.rules.delete",
    argument: "rule_id",
  },
  [`POST ${account}/request-tracer/trace`]: { client: "requestTracers.traces.create" },
  [`PUT ${zone}/snippets/snippet_rules`]: {
    client: "snippets.rules.update",
    terraform: "cloudflare_snippet_rules",
  },
  [`DELETE ${zone}/snippets/{snippet_name}`]: { client: "snippets.delete", argument: "snippet_name" },
  [`POST ${zone}/workers/routes`]: { client: "workers.routes.create", terraform: "cloudflare_workers_route" },
  [`PUT ${zone}/workers/routes/{route_id}`]: { client: "workers.routes.update", argument: "route_id" },
  [`DELETE ${zone}/workers/routes/{route_id}`]: { client: "workers.routes.delete", argument: "route_id" },
  [`PUT ${account}/workers/domains`]: {
    client: "workers.domains.update",
    terraform: "cloudflare_workers_custom_domain",
  },
  [`DELETE ${account}/workers/domains/{domain_id}`]: {
    client: "workers.domains.delete",
    argument: "domain_id",
  },
  [`POST ${zone}/ssl/certificate_packs/order`]: {
    client: "ssl.certificatePacks.create",
    terraform: "cloudflare_certificate_pack",
  },
  [`DELETE ${zone}/ssl/certificate_packs/{certificate_pack_id}`]: {
    client: "ssl.certificatePacks.delete",
    argument: "certificate_pack_id",
  },
  [`POST ${zone}/custom_certificates`]: {
    client: "customCertificates.create",
    terraform: "cloudflare_custom_ssl",
  },
  [`DELETE ${zone}/custom_certificates/{custom_certificate_id}`]: {
    client: "customCertificates.delete",
    argument: "custom_certificate_id",
  },
  [`PATCH ${zone}/ssl/universal/settings`]: { client: "ssl.universal.settings.edit" },
};

const access: Operations = {
  "POST /user/tokens": { client: "user.tokens.create", terraform: "cloudflare_api_token" },
  "DELETE /user/tokens/{token_id}": { client: "user.tokens.delete", argument: "token_id" },
  "PUT /user/tokens/{token_id}/value": { client: "user.tokens.value.update", argument: "token_id" },
  [`POST ${account}/tokens`]: { client: "accounts.tokens.create", terraform: "cloudflare_account_token" },
  [`DELETE ${account}/tokens/{token_id}`]: { client: "accounts.tokens.delete", argument: "token_id" },
  [`PUT ${account}/tokens/{token_id}/value`]: {
    client: "accounts.tokens.value.update",
    argument: "token_id",
  },
  [`POST ${account}/members`]: { client: "accounts.members.create", terraform: "cloudflare_account_member" },
  [`PUT ${account}/members/{member_id}`]: { client: "accounts.members.update", argument: "member_id" },
  [`DELETE ${account}/members/{member_id}`]: { client: "accounts.members.delete", argument: "member_id" },
  [`PUT ${account}`]: { client: "accounts.update", terraform: "cloudflare_account" },
};

const products: Operations = {
  [`PUT ${account}/workers/scripts/{script_name}`]: { terraform: "cloudflare_workers_script" },
  [`DELETE ${account}/workers/scripts/{script_name}`]: {
    client: "workers.scripts.delete",
    argument: "script_name",
    wrangler: ({ params }) => `wrangler delete --name ${word(params!["script_name"]!)}`,
  },
  [`POST ${account}/workers/scripts/{script_name}/deployments`]: {
    client: "workers.scripts.deployments.create",
    argument: "script_name",
  },
  [`PUT ${account}/workers/scripts/{script_name}/secrets`]: {
    client: "workers.scripts.secrets.update",
    argument: "script_name",
  },
  [`DELETE ${account}/workers/scripts/{script_name}/secrets/{secret_name}`]: {
    client: "workers.scripts.secrets.delete",
    argument: "secret_name",
  },
  [`PUT ${account}/workers/scripts/{script_name}/schedules`]: {
    client: "workers.scripts.schedules.update",
    argument: "script_name",
  },
  [`POST ${account}/workers/scripts/{script_name}/tails`]: {
    wrangler: ({ params }) => `wrangler tail ${word(params!["script_name"]!)}`,
  },
  [`POST ${account}/workflows/{workflow_name}/instances`]: {
    client: "workflows.instances.create",
    argument: "workflow_name",
  },
  [`PATCH ${account}/workflows/{workflow_name}/instances/{instance_id}/status`]: {
    client: "workflows.instances.status.edit",
    argument: "instance_id",
  },
  [`POST ${account}/logpush/jobs`]: { client: "logpush.jobs.create", terraform: "cloudflare_logpush_job" },
  [`PUT ${account}/logpush/jobs/{job_id}`]: { client: "logpush.jobs.update", argument: "job_id" },
  [`DELETE ${account}/logpush/jobs/{job_id}`]: { client: "logpush.jobs.delete", argument: "job_id" },
  [`POST ${account}/queues`]: { client: "queues.create", terraform: "cloudflare_queue" },
  [`PATCH ${account}/queues/{queue_id}`]: { client: "queues.edit", argument: "queue_id" },
  [`DELETE ${account}/queues/{queue_id}`]: { client: "queues.delete", argument: "queue_id" },
  [`POST ${account}/queues/{queue_id}/purge`]: { client: "queues.purge.start", argument: "queue_id" },
  [`POST ${account}/queues/{queue_id}/consumers`]: {
    client: "queues.consumers.create",
    argument: "queue_id",
    terraform: "cloudflare_queue_consumer",
  },
  [`PUT ${account}/queues/{queue_id}/consumers/{consumer_id}`]: {
    client: "queues.consumers.update",
    argument: "consumer_id",
  },
  [`DELETE ${account}/queues/{queue_id}/consumers/{consumer_id}`]: {
    client: "queues.consumers.delete",
    argument: "consumer_id",
  },
  [`PUT ${account}/workers/subdomain`]: { client: "workers.subdomains.update" },
  [`POST ${account}/workers/scripts/{script_name}/subdomain`]: {
    client: "workers.scripts.subdomain.create",
    argument: "script_name",
    terraform: "cloudflare_workers_script_subdomain",
  },
  [`POST ${account}/queues/{queue_id}/messages`]: { client: "queues.messages.push", argument: "queue_id" },
  [`POST ${account}/storage/kv/namespaces/{namespace_id}/bulk/delete`]: {
    client: "kv.namespaces.bulkDelete",
    argument: "namespace_id",
  },
  [`POST ${account}/storage/kv/namespaces`]: {
    client: "kv.namespaces.create",
    terraform: "cloudflare_workers_kv_namespace",
  },
  [`DELETE ${account}/storage/kv/namespaces/{namespace_id}`]: {
    client: "kv.namespaces.delete",
    argument: "namespace_id",
  },
  [`DELETE ${account}/storage/kv/namespaces/{namespace_id}/values/{key_name}`]: {
    client: "kv.namespaces.values.delete",
    argument: "key_name",
  },
};

const database = `${account}/d1/database/{database_id}`;
const ofDatabase = ({ params }: Call): string => word(params!["database_id"]!);
const d1: Operations = {
  [`POST ${account}/d1/database`]: {
    client: "d1.database.create",
    terraform: "cloudflare_d1_database",
    wrangler: ({ body }) => `wrangler d1 create ${word((body as { name: string }).name)}`,
  },
  [`DELETE ${database}`]: {
    client: "d1.database.delete",
    argument: "database_id",
    wrangler: (call) => `wrangler d1 delete ${ofDatabase(call)}`,
  },
  [`POST ${database}/raw`]: {
    client: "d1.database.raw",
    argument: "database_id",
    wrangler: (call) =>
      `wrangler d1 execute ${ofDatabase(call)} --remote --command ${quote((call.body as { sql: string }).sql)}`,
  },
  [`POST ${database}/export`]: {
    wrangler: (call) => `wrangler d1 export ${ofDatabase(call)} --remote --output FILE`,
  },
  [`POST ${database}/import`]: {
    wrangler: (call) => `wrangler d1 execute ${ofDatabase(call)} --remote --file FILE`,
  },
  [`POST ${database}/time_travel/restore`]: {
    client: "d1.database.timeTravel.restore",
    argument: "database_id",
    wrangler: (call) =>
      `wrangler d1 time-travel restore ${ofDatabase(call)} --bookmark ${word(String(call.query?.["bookmark"]))}`,
  },
};

const namespaces = `${account}/edge/dispatch/namespaces`;
const customer = `${namespaces}/{namespace_name}/scripts/{script_name}`;
const dispatch: Operations = {
  [`POST ${namespaces}`]: {
    terraform: "cloudflare_workers_for_platforms_dispatch_namespace",
    wrangler: ({ body }) => `wrangler dispatch-namespace create ${word((body as { name: string }).name)}`,
  },
  [`DELETE ${namespaces}/{namespace_name}`]: {
    wrangler: ({ params }) => `wrangler dispatch-namespace delete ${word(params!["namespace_name"]!)}`,
  },
  [`PUT ${customer}`]: {
    wrangler: ({ params }) =>
      `wrangler deploy --name ${word(params!["script_name"]!)} --dispatch-namespace ${word(params!["namespace_name"]!)}`,
  },
};

const image = `${account}/images/v1`;
const images: Operations = {
  [`POST ${image}`]: { terraform: "cloudflare_image" },
  [`PATCH ${image}/{image_id}`]: { client: "images.v1.edit", argument: "image_id" },
  [`DELETE ${image}/{image_id}`]: { client: "images.v1.delete", argument: "image_id" },
  [`POST ${image}/variants`]: { client: "images.v1.variants.create", terraform: "cloudflare_image_variant" },
  [`PATCH ${image}/variants/{variant_name}`]: {
    client: "images.v1.variants.edit",
    argument: "variant_name",
  },
  [`DELETE ${image}/variants/{variant_name}`]: {
    client: "images.v1.variants.delete",
    argument: "variant_name",
  },
  [`PUT ${image}/keys/{signing_key_name}`]: { client: "images.v1.keys.update", argument: "signing_key_name" },
  [`DELETE ${image}/keys/{signing_key_name}`]: {
    client: "images.v1.keys.delete",
    argument: "signing_key_name",
  },
};

/** Other tools' names of operations, by method and path as in openapi.json. */
export const clients: Readonly<Operations> = {
  ...zones,
  ...dns,
  ...traffic,
  ...products,
  ...d1,
  ...dispatch,
  ...images,
  ...access,
};
