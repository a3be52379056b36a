import { capability } from "../../../capability.ts";
import { together } from "../../../control/api/together.ts";
import { zoneSettings } from "../../../control/zone-settings/capability.ts";
import { zones } from "../../../control/zones/capability.ts";
import { storage } from "../../../platform/capability.ts";
import { Certificates } from "./certificates.ts";
import { CertificatePacks } from "./packs.ts";
import { declaration } from "./declaration.ts";
import { certificateErrors, packErrors } from "./errors.ts";
import { certificateErrorCodes, packErrorCodes } from "./api-errors.ts";

export const certificates = capability({
  name: "certificates",
  processes: "all",
  declares: declaration,
  needs: [storage, zones, zoneSettings],
  create({ config, storage: database }) {
    const created = new Certificates(database);
    const packs = new CertificatePacks(database, created, config.acmeDirectory !== undefined);
    return { certificates: created, certificatePacks: packs };
  },
  async operations() {
    const { tlsOperations } = await import("./api.ts");
    return together(tlsOperations);
  },
  errors: [
    { title: "Certificates", errors: certificateErrors, codes: certificateErrorCodes },
    { title: "Certificate packs", errors: packErrors, codes: packErrorCodes },
  ],
  idParameters: ["custom_certificate_id", "certificate_pack_id"],
  metrics: async ({ zones: known, ...services }) =>
    (await import("./metrics.ts")).certificateMetrics(
      services.certificates,
      services.certificatePacks,
      (id) => known.find(id)?.name,
    ),
});
