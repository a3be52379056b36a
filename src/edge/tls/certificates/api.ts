import { z } from "zod";
import type { ApiMessage } from "../../../control/api/envelope.ts";
import { operationsFor } from "../../../control/api/operation.ts";
import { pageQuery, paginate } from "../../../control/api/pagination.ts";
import { isoTime } from "../../../platform/util/ids.ts";
import { packOperations } from "./api-packs.ts";
import { certificateErrors } from "./errors.ts";
import { bundleMethods, certificateTypes, type Certificate, type Certificates } from "./certificates.ts";
import { certificateErrorCodes } from "./api-errors.ts";
import { clock } from "../../../platform/timers/clock.ts";
import { sensitive } from "../../../control/api/sensitive.ts";

/** The services that these operations use. */
interface Services {
  certificates: Certificates;
}

const { listOperation, operation } = operationsFor<Services>(certificateErrorCodes);

const TimeSchema = z.string().meta({ format: "date-time" });
const CertificateSchema = z
  .object({
    id: z.string(),
    zone_id: z.string(),
    type: z.enum(certificateTypes),
    bundle_method: z.enum(bundleMethods),
    hosts: z.array(z.string()),
    issuer: z.string(),
    signature: z.string(),
    status: z.enum(["active", "expired"]),
    priority: z.int(),
    uploaded_on: TimeSchema,
    modified_on: TimeSchema,
    expires_on: TimeSchema,
  })
  .meta({
    id: "CustomCertificate",
    description: "A certificate that was uploaded for a zone, without its key",
  });

const resource = (certificate: Certificate): z.input<typeof CertificateSchema> => ({
  id: certificate.id,
  zone_id: certificate.zoneId,
  type: certificate.type,
  bundle_method: certificate.bundleMethod,
  hosts: certificate.hosts,
  issuer: certificate.issuer,
  signature: certificate.signature,
  status: statusOf(certificate),
  priority: certificate.priority,
  uploaded_on: isoTime(certificate.uploadedOn),
  modified_on: isoTime(certificate.modifiedOn),
  expires_on: isoTime(certificate.expiresOn),
});
const statusOf = ({ expiresOn }: Certificate): "active" | "expired" =>
  expiresOn > clock.now() ? "active" : "expired";

const pem = z.string().min(1).max(65_536);
const path = "/zones/{zone_id}/custom_certificates";
const one = `${path}/{custom_certificate_id}`;
const access = {
  read: { scope: "zone", permission: "ssl_certificates:read" },
  edit: { scope: "zone", permission: "ssl_certificates:edit" },
} as const;

/** Fields of the public API that this installation does not support. */
const Unsupported = z.object({
  geo_restrictions: z.unknown().optional(),
  policy: z.unknown().optional(),
  policy_restrictions: z.unknown().optional(),
  custom_csr_id: z.unknown().optional(),
  deploy: z.enum(["staging", "production"]).optional(),
});
function refuseUnsupported(body: z.output<typeof Unsupported>): void {
  for (const name of ["geo_restrictions", "policy", "policy_restrictions", "custom_csr_id"] as const) {
    if (body[name] === undefined || body[name] === null || body[name] === "") continue;
    throw certificateErrors.unsupported(name);
  }
  if (body.deploy === "staging") throw certificateErrors.noStaging();
}

/** The public service may rebuild bundles; here they are served unchanged, so the owner gets a message. */
function bundleAdvice(method: Certificate["bundleMethod"], messages: ApiMessage[]): void {
  if (method === "force") return;
  messages.push({
    code: 1408,
    message: `bundle_method "${method}" is stored without effect: the bundle is served unchanged`,
  });
}

const listCertificates = listOperation({
  id: "custom_certificate_list",
  method: "GET",
  path,
  summary: "List the zone's custom certificates",
  access: access.read,
  query: pageQuery({ default: 20, min: 1, max: 50 }).extend({
    status: z.enum(["active", "expired", "deleted", "pending", "initializing"]).optional(),
    match: z.enum(["any", "all"]).optional(),
  }),
  result: CertificateSchema,
  async handle({ zone, query, services }) {
    const all = await services.certificates.listCustom(zone.id);
    const { status } = query;
    const page = paginate(
      status === undefined ? all : all.filter((each) => statusOf(each) === status),
      query,
    );
    return { ...page, items: page.items.map(resource) };
  },
});

const createCertificate = operation({
  id: "custom_certificate_create",
  method: "POST",
  path,
  summary: "Upload a certificate with its key",
  access: access.edit,
  body: z.strictObject({
    certificate: pem,
    private_key: sensitive(pem),
    bundle_method: z.enum(bundleMethods).default("ubiquitous"),
    type: z.enum(certificateTypes).default("sni_custom"),
    ...Unsupported.shape,
  }),
  result: CertificateSchema,
  async handle({ zone, body, services, messages }) {
    refuseUnsupported(body);
    bundleAdvice(body.bundle_method, messages);
    const pair = { certificate: body.certificate, privateKey: body.private_key };
    const options = { bundleMethod: body.bundle_method, type: body.type };
    return resource(await services.certificates.create(zone, pair, options));
  },
});

const getCertificate = operation({
  id: "custom_certificate_get",
  method: "GET",
  path: one,
  summary: "Get a custom certificate",
  access: access.read,
  result: CertificateSchema,
  handle: async ({ zone, params, services }) =>
    resource(await services.certificates.find(zone, params["custom_certificate_id"]!)),
});

const editCertificate = operation({
  id: "custom_certificate_edit",
  method: "PATCH",
  path: one,
  summary: "Replace a custom certificate; a certificate of type sni_custom gets a new id",
  access: access.edit,
  body: z.strictObject({
    certificate: pem.optional(),
    private_key: sensitive(pem).optional(),
    bundle_method: z.enum(bundleMethods).optional(),
    ...Unsupported.shape,
  }),
  result: CertificateSchema,
  async handle({ zone, params, body, services, messages }) {
    refuseUnsupported(body);
    const { certificate, private_key: privateKey, bundle_method: bundleMethod } = body;
    if (bundleMethod !== undefined) bundleAdvice(bundleMethod, messages);
    const pair = {
      ...(certificate === undefined ? {} : { certificate }),
      ...(privateKey === undefined ? {} : { privateKey }),
    };
    const change = { pair, ...(bundleMethod === undefined ? {} : { bundleMethod }) };
    return resource(await services.certificates.edit(zone, params["custom_certificate_id"]!, change));
  },
});

const deleteCertificate = operation({
  id: "custom_certificate_delete",
  method: "DELETE",
  path: one,
  summary: "Delete a custom certificate",
  access: access.edit,
  result: z.object({ id: z.string() }),
  async handle({ zone, params, services }) {
    const id = params["custom_certificate_id"]!;
    await services.certificates.delete(zone, id);
    return { id };
  },
});

const prioritizeCertificates = operation({
  id: "custom_certificate_prioritize",
  method: "PUT",
  path: `${path}/prioritize`,
  summary: "Set the priorities of the zone's custom certificates",
  access: access.edit,
  body: z.strictObject({
    certificates: z
      .array(z.strictObject({ id: z.string().max(36), priority: z.int().min(0).max(1_000_000) }))
      .min(1)
      .max(100),
  }),
  result: z.array(CertificateSchema),
  handle: async ({ zone, body, services }) =>
    (await services.certificates.prioritize(zone, body.certificates)).map(resource),
});

export const tlsOperations = [
  listCertificates,
  createCertificate,
  getCertificate,
  editCertificate,
  deleteCertificate,
  prioritizeCertificates,
  ...packOperations,
];
