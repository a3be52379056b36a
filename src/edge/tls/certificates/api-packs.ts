import { z } from "zod";
import { operationsFor } from "../../../control/api/operation.ts";
import { pageQuery, paginate } from "../../../control/api/pagination.ts";
import { isoTime } from "../../../platform/util/ids.ts";
import { packErrors, packsMax } from "./errors.ts";
import {
  certificateAuthorities,
  packHostsMax,
  validityDays,
  type PackWithCertificate,
  type CertificatePacks,
} from "./packs.ts";
import type { ZoneSettings } from "../../../control/zone-settings/zone-settings.ts";
import type { Zones } from "../../../control/zones/zones.ts";
import { packErrorCodes } from "./api-errors.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** The services that these operations use. */
interface Services {
  certificatePacks: CertificatePacks;
  zoneSettings: ZoneSettings;
  zones: Zones;
}

const { listOperation, operation } = operationsFor<Services>(packErrorCodes);

const TimeSchema = z.string().meta({ format: "date-time" });
const validationMethods = ["txt", "http"] as const;
const PackSchema = z
  .object({
    id: z.string(),
    type: z.enum(["universal", "advanced"]),
    hosts: z.array(z.string()),
    status: z.enum(["initializing", "pending_validation", "active", "expired"]),
    validation_method: z.enum(validationMethods),
    validity_days: z.literal(validityDays),
    certificate_authority: z.enum(certificateAuthorities),
    /** Empty, or the id of the only certificate. */
    primary_certificate: z.string(),
    certificates: z.array(
      z.object({
        id: z.string(),
        zone_id: z.string(),
        hosts: z.array(z.string()),
        issuer: z.string(),
        signature: z.string(),
        status: z.enum(["active", "expired"]),
        bundle_method: z.literal("force"),
        priority: z.int(),
        uploaded_on: TimeSchema,
        modified_on: TimeSchema,
        expires_on: TimeSchema,
      }),
    ),
    validation_errors: z.array(z.object({ message: z.string() })),
    cloudflare_branding: z.literal(false),
    created_on: TimeSchema,
    /** Time of the next issue or retry. */
    next_issue_on: TimeSchema,
  })
  .meta({ id: "CertificatePack", description: "Host names that an ACME authority issues a certificate for" });

const resource = (pack: PackWithCertificate): z.input<typeof PackSchema> => {
  const { certificate, error } = pack;
  const isExpired = certificate !== undefined && certificate.expiresOn <= clock.now();
  const unissued = pack.attempts === 0 ? "initializing" : "pending_validation";
  return {
    id: pack.id,
    type: pack.type,
    hosts: pack.hosts,
    status: certificate === undefined ? unissued : isExpired ? "expired" : "active",
    validation_method: pack.validationMethod,
    validity_days: pack.validityDays,
    certificate_authority: pack.certificateAuthority,
    primary_certificate: certificate?.id ?? "",
    certificates:
      certificate === undefined
        ? []
        : [
            {
              id: certificate.id,
              zone_id: certificate.zoneId,
              hosts: certificate.hosts,
              issuer: certificate.issuer,
              signature: certificate.signature,
              status: isExpired ? "expired" : "active",
              bundle_method: "force",
              priority: certificate.priority,
              uploaded_on: isoTime(certificate.uploadedOn),
              modified_on: isoTime(certificate.modifiedOn),
              expires_on: isoTime(certificate.expiresOn),
            },
          ],
    validation_errors: error === null ? [] : [{ message: error }],
    cloudflare_branding: false,
    created_on: isoTime(pack.createdOn),
    next_issue_on: isoTime(pack.nextOn),
  };
};

const path = "/zones/{zone_id}/ssl/certificate_packs";
const one = `${path}/{certificate_pack_id}`;
const access = {
  read: { scope: "zone", permission: "ssl_certificates:read" },
  edit: { scope: "zone", permission: "ssl_certificates:edit" },
} as const;

const listPacks = listOperation({
  id: "certificate_pack_list",
  method: "GET",
  path,
  summary: "List the zone's certificate packs",
  access: access.read,
  query: pageQuery({ default: 20, min: 1, max: 50 }).extend({
    status: z.literal("all").optional(),
    deploy: z.literal("production").optional(),
  }),
  result: PackSchema,
  async handle({ zone, query, services }) {
    const page = paginate(await services.certificatePacks.list(zone.id), query);
    return { ...page, items: page.items.map(resource) };
  },
});

const orderPack = operation({
  id: "certificate_pack_order",
  method: "POST",
  path: `${path}/order`,
  summary: "Order an advanced certificate pack",
  access: access.edit,
  body: z.strictObject({
    type: z.literal("advanced"),
    hosts: z.array(z.string().min(1).max(255)).min(1).max(packHostsMax),
    validation_method: z.enum(validationMethods),
    validity_days: z.literal(validityDays),
    certificate_authority: z.enum(certificateAuthorities),
    cloudflare_branding: z.literal(false).optional(),
  }),
  result: PackSchema,
  async handle({ zone, body, services, messages }) {
    for (const [index, host] of body.hosts.entries()) {
      const governor = services.zones.governing(host.toLowerCase().replace(/^\*\./, ""));
      if (governor !== undefined && governor.accountId !== zone.accountId)
        throw packErrors.host(index, host, "it is in a zone of another account");
    }
    messages.push({
      code: 1421,
      message:
        "certificate_authority and validity_days are stored without effect: the installation's ACME authority and its validity apply",
    });
    return resource(
      await services.certificatePacks.order(zone, {
        hosts: body.hosts,
        validationMethod: body.validation_method,
        validityDays: body.validity_days,
        certificateAuthority: body.certificate_authority,
      }),
    );
  },
});

const getPack = operation({
  id: "certificate_pack_get",
  method: "GET",
  path: one,
  summary: "Get a certificate pack",
  access: access.read,
  result: PackSchema,
  handle: async ({ zone, params, services }) =>
    resource(await services.certificatePacks.find(zone, params["certificate_pack_id"]!)),
});

const editPack = operation({
  id: "certificate_pack_restart",
  method: "PATCH",
  path: one,
  summary: "Validate and issue a certificate pack again, at once",
  access: access.edit,
  body: z.strictObject({ cloudflare_branding: z.literal(false).optional() }),
  bodyOptional: true,
  result: PackSchema,
  handle: async ({ zone, params, services }) =>
    resource(await services.certificatePacks.restart(zone, params["certificate_pack_id"]!)),
});

const deletePack = operation({
  id: "certificate_pack_delete",
  method: "DELETE",
  path: one,
  summary: "Delete an advanced certificate pack, and its certificate",
  access: access.edit,
  result: z.object({ id: z.string() }),
  async handle({ zone, params, services }) {
    const id = params["certificate_pack_id"]!;
    await services.certificatePacks.delete(zone, id);
    return { id };
  },
});

const getQuota = operation({
  id: "certificate_pack_quota",
  method: "GET",
  path: `${path}/quota`,
  summary: "Get the limit and the number of the zone's advanced certificate packs",
  access: access.read,
  result: z.object({ advanced: z.object({ allocated: z.int(), used: z.int() }) }),
  async handle({ zone, services }) {
    const packs = await services.certificatePacks.list(zone.id);
    const used = packs.filter(({ type }) => type === "advanced").length;
    return { advanced: { allocated: packsMax, used } };
  },
});

const UniversalSchema = z.object({ enabled: z.boolean() }).meta({ id: "UniversalSslSettings" });
const universalPath = "/zones/{zone_id}/ssl/universal/settings";

const getUniversal = operation({
  id: "universal_ssl_get",
  method: "GET",
  path: universalPath,
  summary: "Get whether the zone has a universal certificate",
  access: access.read,
  result: UniversalSchema,
  handle: async ({ zone, services }) => ({
    enabled: services.zoneSettings.value(zone.id, "universal_ssl") === "on",
  }),
});

const editUniversal = operation({
  id: "universal_ssl_edit",
  method: "PATCH",
  path: universalPath,
  summary: "Enable or disable the zone's universal certificate",
  access: access.edit,
  body: z.strictObject({ enabled: z.boolean() }),
  result: UniversalSchema,
  async handle({ zone, body: { enabled }, services }) {
    await services.zoneSettings.set(zone.id, "universal_ssl", enabled ? "on" : "off");
    return { enabled };
  },
});

const VerificationSchema = z
  .object({
    cert_pack_uuid: z.string(),
    certificate_status: z.enum(["initializing", "authorizing", "active", "expired"]),
    validation_method: z.enum(validationMethods),
    verification_status: z.boolean(),
    /** Not in the public API: why the certificate could not be issued. */
    error: z.string().nullable(),
  })
  .meta({ id: "SslVerification" });

const getVerification = operation({
  id: "ssl_verification_get",
  method: "GET",
  path: "/zones/{zone_id}/ssl/verification",
  summary: "Get the verification status of the zone's certificate packs",
  access: access.read,
  query: z.object({ retry: z.literal(["true", "false"]).optional() }),
  result: z.array(VerificationSchema),
  async handle({ zone, query, services }) {
    const packs = await services.certificatePacks.list(zone.id);
    const failed = packs.filter(({ error }) => error !== null);
    if (query.retry === "true")
      for (const { id } of failed) await services.certificatePacks.restart(zone, id);
    return packs.map((pack) => {
      const { status } = resource(pack);
      return {
        cert_pack_uuid: pack.id,
        certificate_status: status === "pending_validation" ? ("authorizing" as const) : status,
        validation_method: pack.validationMethod,
        verification_status: pack.certificate !== undefined,
        error: pack.error,
      };
    });
  },
});

const editVerification = operation({
  id: "ssl_verification_edit",
  method: "PATCH",
  path: "/zones/{zone_id}/ssl/verification/{certificate_pack_id}",
  summary: "Change the validation method of an advanced certificate pack and issue it again",
  access: access.edit,
  body: z.strictObject({ validation_method: z.enum(["http", "cname", "txt", "email"]) }),
  result: z.object({ status: z.string(), validation_method: z.enum(validationMethods) }),
  async handle({ zone, params, body: { validation_method: method }, services }) {
    if (method !== "txt" && method !== "http") throw packErrors.unknownMethod(method);
    const pack = await services.certificatePacks.setMethod(zone, params["certificate_pack_id"]!, method);
    return { status: resource(pack).status, validation_method: pack.validationMethod };
  },
});

export const packOperations = [
  listPacks,
  orderPack,
  getQuota,
  getPack,
  editPack,
  deletePack,
  getUniversal,
  editUniversal,
  getVerification,
  editVerification,
];
