import { z } from "zod";
import { apiErrors } from "../../control/api/errors.ts";
import { operationsFor } from "../../control/api/operation.ts";
import { dnsEdit, dnsRead } from "../records/access.ts";
import { parseHost } from "../records/types/host.ts";
import { show } from "../../platform/util/json.ts";
import type { Zone } from "../../control/zones/zone.ts";
import type { DnsSettings, DnsSettingsOfZones } from "./dns-settings.ts";

/** The services that these operations use. */
interface Services {
  dnsSettings: DnsSettingsOfZones;
}

const { operation } = operationsFor<Services>();

const path = "/zones/{zone_id}/dns_settings";
const seconds = (min: number, max: number) => z.int().min(min).max(max);
const nameServerType = "cloudflare.standard";

/** Limits as documented for the public API. */
const soaShape = {
  refresh: seconds(600, 86_400),
  retry: seconds(600, 86_400),
  expire: seconds(86_400, 2_419_200),
  min_ttl: seconds(60, 86_400),
  ttl: seconds(300, 86_400),
};

export const DnsSettingsSchema = z
  .object({
    flatten_all_cnames: z.boolean(),
    foundation_dns: z.boolean(),
    multi_provider: z.boolean(),
    nameservers: z.object({ type: z.string(), ns_set: z.int() }),
    ns_ttl: z.int(),
    secondary_overrides: z.boolean(),
    soa: z.object({ mname: z.string().nullable(), rname: z.string(), ...soaShape }),
    zone_mode: z.string(),
    internal_dns: z.object({}),
  })
  .meta({ id: "DnsSettings", description: "The DNS settings of a zone" });

function resource(zone: Zone, settings: DnsSettings): z.input<typeof DnsSettingsSchema> {
  return {
    ...settings,
    foundation_dns: false,
    nameservers: { type: nameServerType, ns_set: 1 },
    secondary_overrides: false,
    soa: { ...settings.soa, rname: settings.soa.rname ?? `dns.${zone.name}` },
    zone_mode: "standard",
    internal_dns: {},
  };
}

const getSettings = operation({
  id: "zone_dns_settings_get",
  method: "GET",
  path,
  summary: "Get a zone's DNS settings",
  access: dnsRead,
  result: DnsSettingsSchema,
  handle: async ({ zone, services }) => resource(zone, services.dnsSettings.find(zone.id)),
});

const PatchSchema = z.strictObject({
  flatten_all_cnames: z.boolean().optional(),
  multi_provider: z.boolean().optional(),
  ns_ttl: seconds(30, 86_400).optional(),
  soa: z
    .strictObject({ mname: z.string().max(253).nullable(), rname: z.string().max(253), ...soaShape })
    .partial()
    .optional(),
  foundation_dns: z.boolean().optional(),
  secondary_overrides: z.boolean().optional(),
  zone_mode: z.enum(["standard", "cdn_only", "dns_only"]).optional(),
  nameservers: z
    .strictObject({ type: z.string().optional(), ns_set: z.int().min(1).max(5).optional() })
    .optional(),
  internal_dns: z.strictObject({ reference_zone_id: z.string().optional() }).optional(),
});
type Patch = z.output<typeof PatchSchema>;

const editSettings = operation({
  id: "zone_dns_settings_edit",
  method: "PATCH",
  path,
  summary: "Change a zone's DNS settings",
  access: dnsEdit,
  body: PatchSchema,
  result: DnsSettingsSchema,
  async handle({ zone, body, services }) {
    refuseUnsupported(body);
    const current = services.dnsSettings.find(zone.id);
    const soa = { ...current.soa, ...defined(body.soa ?? {}) };
    for (const name of ["mname", "rname"] as const) soa[name] = hostOf(name, soa[name]);
    if (soa.retry > soa.refresh || soa.refresh > soa.expire) {
      throw apiErrors.invalid(
        `Expected retry ≤ refresh ≤ expire for soa but received ${soa.retry}, ${soa.refresh}, ${soa.expire}`,
        "/body/soa",
      );
    }
    const settings: DnsSettings = {
      flatten_all_cnames: body.flatten_all_cnames ?? current.flatten_all_cnames,
      multi_provider: body.multi_provider ?? current.multi_provider,
      ns_ttl: body.ns_ttl ?? current.ns_ttl,
      soa,
    };
    if (JSON.stringify(settings) !== JSON.stringify(current))
      await services.dnsSettings.save(zone.id, settings);
    return resource(zone, settings);
  },
});

function refuseUnsupported(body: Patch): void {
  const refuse = (field: string, expected: string, received: unknown): void => {
    throw apiErrors.invalid(
      `Expected ${expected} for ${field} but received ${show(received)}. Other values are not supported`,
      `/body/${field.replace(".", "/")}`,
    );
  };
  if (body.foundation_dns === true) refuse("foundation_dns", "false", true);
  if (body.secondary_overrides === true) refuse("secondary_overrides", "false", true);
  if (body.zone_mode !== undefined && body.zone_mode !== "standard")
    refuse("zone_mode", '"standard"', body.zone_mode);
  const { type, ns_set } = body.nameservers ?? {};
  if (type !== undefined && type !== nameServerType) refuse("nameservers.type", `"${nameServerType}"`, type);
  if (ns_set !== undefined && ns_set !== 1) refuse("nameservers.ns_set", "1", ns_set);
  if (body.internal_dns?.reference_zone_id !== undefined)
    refuse("internal_dns.reference_zone_id", "nothing", body.internal_dns.reference_zone_id);
}

function hostOf(name: string, value: string | null): string | null {
  if (value === null) return null;
  const host = parseHost(value, { underscore: true });
  if (host !== undefined) return host;
  throw apiErrors.invalid(
    `Expected a host name for soa.${name} but received ${show(value)}`,
    `/body/soa/${name}`,
  );
}

const defined = <T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as never;

export const dnsSettingsOperations = [getSettings, editSettings];
