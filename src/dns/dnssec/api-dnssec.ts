import { z } from "zod";
import { apiErrors } from "../../control/api/errors.ts";
import { operationsFor } from "../../control/api/operation.ts";
import { dnsEdit, dnsRead } from "../records/access.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Zone } from "../../control/zones/zone.ts";
import { algorithm, digestOf, digestType, keyFlags, keyTagOf } from "./key.ts";
import type { SigningState, Dnssec } from "./dnssec.ts";
import { dnssecErrorCodes } from "./api-errors.ts";

/** The services that these operations use. */
interface Services {
  dnssec: Dnssec;
}

const { operation } = operationsFor<Services>(dnssecErrorCodes);

const path = "/zones/{zone_id}/dnssec";

export const DnssecSchema = z
  .object({
    status: z.enum(["active", "pending", "disabled", "pending-disabled"]),
    flags: z.int().nullable(),
    algorithm: z.string().nullable(),
    key_type: z.string().nullable(),
    digest_type: z.string().nullable(),
    digest_algorithm: z.string().nullable(),
    digest: z.string().nullable(),
    ds: z.string().nullable().meta({ description: "The DS record for the parent zone" }),
    key_tag: z.int().nullable(),
    public_key: z.string().nullable(),
    dnssec_multi_signer: z.boolean(),
    dnssec_presigned: z.boolean(),
    dnssec_use_nsec3: z.boolean(),
    modified_on: z.string().meta({ format: "date-time" }).nullable(),
  })
  .meta({ id: "Dnssec", description: "The DNSSEC state of a zone" });

const dsTtl = 3600;

function resource(zone: Zone, state: SigningState | undefined): z.input<typeof DnssecSchema> {
  const common = {
    status: state?.status ?? "disabled",
    dnssec_multi_signer: state?.isMultiSigner ?? false,
    dnssec_presigned: false,
    dnssec_use_nsec3: false,
    modified_on: state === undefined ? null : isoTime(state.modifiedOn),
  };
  if (state === undefined || state.status === "disabled") {
    return {
      ...common,
      flags: null,
      algorithm: null,
      key_type: null,
      digest_type: null,
      digest_algorithm: null,
      digest: null,
      ds: null,
      key_tag: null,
      public_key: null,
    };
  }
  const digest = digestOf(zone.name, state.publicKey);
  const keyTag = keyTagOf(state.publicKey);
  return {
    ...common,
    flags: keyFlags,
    algorithm: String(algorithm),
    key_type: "ECDSAP256SHA256",
    digest_type: String(digestType),
    digest_algorithm: "SHA256",
    digest,
    ds: `${zone.name}. ${dsTtl} IN DS ${keyTag} ${algorithm} ${digestType} ${digest}`,
    key_tag: keyTag,
    public_key: state.publicKey,
  };
}

const getDnssec = operation({
  id: "zone_dnssec_get",
  method: "GET",
  path,
  summary: "Get a zone's DNSSEC state and the DS record for its parent",
  access: dnsRead,
  result: DnssecSchema,
  handle: async ({ zone, services }) => resource(zone, services.dnssec.find(zone.id)),
});

const editDnssec = operation({
  id: "zone_dnssec_edit",
  method: "PATCH",
  path,
  summary: "Enable or disable the signing of a zone",
  access: dnsEdit,
  body: z.strictObject({
    status: z.enum(["active", "disabled"]).optional(),
    dnssec_multi_signer: z.boolean().optional(),
    dnssec_presigned: z.boolean().optional(),
    dnssec_use_nsec3: z.boolean().optional(),
  }),
  result: DnssecSchema,
  async handle({ zone, body, services }) {
    for (const field of ["dnssec_presigned", "dnssec_use_nsec3"] as const) {
      if (body[field] === true) {
        throw apiErrors.invalid(
          `Expected false for ${field} but received true: this platform signs zones itself, with compact NSEC records for names that do not exist`,
          `/body/${field}`,
        );
      }
    }
    const { status, dnssec_multi_signer: isMultiSigner } = body;
    return resource(zone, await services.dnssec.edit(zone, { status, isMultiSigner }));
  },
});

const deleteDnssec = operation({
  id: "zone_dnssec_delete",
  method: "DELETE",
  path,
  summary: "Delete the signing key of an unsigned zone",
  access: dnsEdit,
  result: z.string(),
  async handle({ zone, services }) {
    await services.dnssec.delete(zone);
    return "";
  },
});

export const dnssecOperations = [getDnssec, editDnssec, deleteDnssec];
