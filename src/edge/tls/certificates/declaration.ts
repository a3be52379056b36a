import { declare, table } from "../../../declaration.ts";
import type { CertificatesTable, CertificatePacksTable } from "./tables.ts";

/** Certificates of zones. */
export const declaration = declare({
  tables: {
    certificates: table<CertificatesTable>(),
    certificate_packs: table<CertificatePacksTable>(),
  },
  changes: ["certificate", "certificate_pack"],
});
