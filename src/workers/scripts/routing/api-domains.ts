import { z } from "zod";
import { readJson } from "../../../control/api/body.ts";
import { apiErrors } from "../../../control/api/errors.ts";
import { operationsFor } from "../../../control/api/operation.ts";
import { scriptDomainErrors } from "./errors.ts";
import type { Domain } from "./domains.ts";
import {
  accountScripts,
  editAccess,
  nameOf,
  readAccess,
  scriptOf,
  type AnyCall,
  type ScriptServices,
} from "../api-collection.ts";
import { requireRoutesEdit, zoneOfHost } from "./zone-of-host.ts";
import { scriptDomainErrorCodes } from "./api-errors.ts";

const { operation } = operationsFor<ScriptServices>(scriptDomainErrorCodes);

const base = "/accounts/{account_id}/workers/domains";
const script = `${accountScripts.path}/{script_name}`;
const bodyBytesMax = 1024 * 1024;

const DomainSchema = z
  .object({
    id: z.string(),
    hostname: z.string(),
    service: z.string(),
    environment: z.literal("production"),
    zone_id: z.string(),
    zone_name: z.string(),
    cert_id: z.string(),
  })
  .meta({ id: "ScriptDomain" });

const domainResource = (call: AnyCall, domain: Domain): z.input<typeof DomainSchema> => ({
  id: domain.id,
  hostname: domain.hostname,
  service: domain.service,
  environment: "production",
  zone_id: domain.zoneId,
  zone_name: call.services.zones.find(domain.zoneId)?.name ?? "",
  cert_id: domain.certId,
});

/** Throws unless the caller may edit the scripts that have these host names now. */
function requireEdit(call: AnyCall, domains: readonly Domain[]): void {
  for (const { zoneId } of domains) {
    const zone = call.services.zones.find(zoneId);
    if (zone !== undefined) requireRoutesEdit(call, zone);
  }
}

/** The account's domain for a host name that is about to be given to a script, if there is one. */
function knownDomain(call: AnyCall, hostname: string): Domain | undefined {
  const known = call.services.domains.ofHost(hostname.toLowerCase());
  return known?.accountId === call.account.id ? known : undefined;
}

const ListQuery = z.object({
  zone_id: z.string().optional(),
  zone_name: z.string().optional(),
  service: z.string().optional(),
  hostname: z.string().optional(),
  environment: z.string().optional(),
});

/** Custom domains: host names whose requests all go to one script. */
const accountDomainOperations = [
  operation({
    id: "domain_list",
    method: "GET",
    path: base,
    summary: "List the host names that belong to scripts",
    access: readAccess,
    query: ListQuery,
    result: z.array(DomainSchema),
    async handle(call) {
      const { query } = call;
      const all = call.services.domains.list(call.account.id).map((domain) => domainResource(call, domain));
      const keys = Object.keys(ListQuery.shape) as (keyof typeof query)[];
      return all.filter((domain) =>
        keys.every((key) => query[key] === undefined || query[key] === domain[key]),
      );
    },
  }),
  operation({
    id: "domain_put",
    method: "PUT",
    path: base,
    summary: "Give a host name to a script, also one that another script has",
    access: editAccess,
    body: z.strictObject({
      hostname: z.string().min(1).max(253),
      service: z.string().min(1).max(255),
      zone_id: z.string().optional(),
      zone_name: z.string().optional(),
      environment: z.literal("production").optional(),
      // Accepted and ignored, so that a response can be sent back.
      id: z.string().optional(),
      cert_id: z.string().optional(),
    }),
    result: DomainSchema,
    async handle(call) {
      const { hostname, service } = call.body;
      const zone = zoneOfHost(call, call.body, hostname);
      const known = knownDomain(call, hostname);
      if (known !== undefined) requireEdit(call, [known]);
      return domainResource(
        call,
        await call.services.domains.put(zone, hostname, service, {
          takeOver: true,
          replaceRecords: false,
        }),
      );
    },
  }),
  ...["", "/records"].map((folder) =>
    operation({
      id: folder === "" ? "domain_get" : "domain_record_get",
      method: "GET",
      path: `${base}${folder}/{domain_id}`,
      summary: "Get a host name that belongs to a script",
      access: readAccess,
      result: DomainSchema,
      handle: async (call) =>
        domainResource(call, call.services.domains.get(call.account.id, call.params["domain_id"]!)),
    }),
  ),
  operation({
    id: "domain_delete",
    method: "DELETE",
    path: `${base}/{domain_id}`,
    summary: "Take a host name from its script",
    access: editAccess,
    result: z.object({ id: z.string() }),
    async handle(call) {
      const { account, params, services } = call;
      const domain = services.domains.get(account.id, params["domain_id"]!);
      requireEdit(call, [domain]);
      await services.domains.delete([domain]);
      return { id: domain.id };
    },
  }),
];

const OriginSchema = z.strictObject({
  hostname: z.string().min(1).max(253),
  zone_id: z.string().optional(),
  zone_name: z.string().optional(),
  enabled: z.boolean().optional(),
  previews_enabled: z.boolean().optional(),
});
type Origin = z.output<typeof OriginSchema>;
const OriginsSchema = z.array(OriginSchema).max(1000);
const RecordsSchema = z.strictObject({
  override_scope: z.boolean().default(false),
  override_existing_origin: z.boolean().default(false),
  override_existing_dns_record: z.boolean().default(false),
  origins: OriginsSchema,
});
const ChangeSchema = z.looseObject({ hostname: z.string(), modified: z.boolean() });

function refuseUnsupported(origins: readonly Origin[]): void {
  for (const [i, { enabled, previews_enabled }] of origins.entries()) {
    if (enabled === false)
      throw apiErrors.invalid(
        "Disabled domains are not supported here: remove the domain instead",
        `/body/${i}/enabled`,
      );
    if (previews_enabled === true)
      throw apiErrors.invalid("Previews of versions are not supported here", `/body/${i}/previews_enabled`);
  }
}

/** The script's domains that a complete new list does not contain. */
function leftOut(call: AnyCall, origins: readonly Origin[]): Domain[] {
  const wanted = new Set(origins.map(({ hostname }) => hostname.toLowerCase()));
  return call.services.domains
    .listOf(call.account.id, nameOf(call))
    .filter(({ hostname }) => !wanted.has(hostname));
}

/** How clients deploy the domains of a script: first they request the changes, then they apply them. */
const scriptDomainOperations = [
  operation({
    id: "script_domains_changeset",
    audit: "none",
    method: "POST",
    path: `${script}/domains/changeset`,
    summary: "Preview the changes that a list of host names would make for a script",
    access: editAccess,
    query: z.object({ replace_state: z.enum(["true", "false"]).optional() }),
    body: OriginsSchema,
    bodyKind: "own",
    acceptAnyContentType: true,
    result: z.object({
      added: z.array(ChangeSchema),
      updated: z.array(ChangeSchema),
      removed: z.array(ChangeSchema),
      conflicting: z.array(ChangeSchema),
    }),
    async handle(call) {
      const origins = await readJson(call.incoming, OriginsSchema, bodyBytesMax);
      const { name } = scriptOf(accountScripts, call);
      refuseUnsupported(origins);
      const { domainRecords } = call.services;
      const known = origins.map((origin) => ({
        origin,
        zone: zoneOfHost(call, origin, origin.hostname),
        domain: knownDomain(call, origin.hostname),
      }));
      const conflicting: z.input<typeof ChangeSchema>[] = [];
      for (const { origin, zone } of known) {
        const records = await domainRecords.conflicts(zone, origin.hostname.toLowerCase());
        if (records.length > 0) conflicting.push({ ...origin, modified: true });
      }
      return {
        added: known.flatMap(({ origin, domain }) =>
          domain === undefined ? [{ ...origin, modified: true }] : [],
        ),
        updated: known.flatMap(({ domain }) =>
          domain === undefined
            ? []
            : [{ ...domainResource(call, domain), modified: domain.service !== name }],
        ),
        removed:
          call.query.replace_state === "true"
            ? leftOut(call, origins).map((domain) => ({ ...domainResource(call, domain), modified: true }))
            : [],
        conflicting,
      };
    },
  }),
  operation({
    id: "script_domains_put",
    method: "PUT",
    path: `${script}/domains/records`,
    summary: "Give host names to a script; with override_scope, these and no others",
    access: editAccess,
    body: RecordsSchema,
    bodyKind: "own",
    acceptAnyContentType: true,
    result: z.array(DomainSchema),
    async handle(call) {
      const input = await readJson(call.incoming, RecordsSchema, bodyBytesMax);
      const { name } = scriptOf(accountScripts, call);
      refuseUnsupported(input.origins);
      const { domains } = call.services;
      const zones = input.origins.map((origin) => {
        const other = knownDomain(call, origin.hostname);
        if (other !== undefined && other.service !== name && !input.override_existing_origin)
          throw scriptDomainErrors.taken(other.hostname, other.service);
        if (other !== undefined) requireEdit(call, [other]);
        return zoneOfHost(call, origin, origin.hostname);
      });
      const removed = input.override_scope ? leftOut(call, input.origins) : [];
      requireEdit(call, removed);
      const made: Domain[] = [];
      const may = {
        takeOver: input.override_existing_origin,
        replaceRecords: input.override_existing_dns_record,
      };
      for (const [i, { hostname }] of input.origins.entries())
        made.push(await domains.put(zones[i]!, hostname, name, may));
      await domains.delete(removed);
      return made.map((domain) => domainResource(call, domain));
    },
  }),
];

export const domainOperations = [...accountDomainOperations, ...scriptDomainOperations];
