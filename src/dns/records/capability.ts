import { capability } from "../../capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { storage } from "../../platform/capability.ts";
import { DnsRecords } from "./records.ts";
import { declaration } from "./declaration.ts";
import { dnsErrors } from "./errors.ts";
import { dnsErrorCodes } from "./api/api-errors.ts";

export const records = capability({
  name: "DNS records",
  processes: "all",
  declares: declaration,
  needs: [storage, zones],
  create(needed) {
    const created = new DnsRecords(needed.storage);
    created.changes.onChange(async ({ zoneId, names }) =>
      needed.zones.reviewDelegations(zoneId, names.keys()),
    );
    return { records: created };
  },
  operations: async () => (await import("./api/api.ts")).dnsOperations,
  errors: [{ title: "DNS records", errors: dnsErrors, codes: dnsErrorCodes }],
  idParameters: ["dns_record_id"],
});
