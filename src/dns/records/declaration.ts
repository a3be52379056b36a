import { declare, table } from "../../declaration.ts";
import type { DnsRecordsTable } from "./tables.ts";

/** DNS records. */
export const declaration = declare({
  tables: {
    dns_records: table<DnsRecordsTable>(),
  },
  migrations: {
    "0028-record-pages": async () => (await import("./migrations/0028-record-pages.ts")).recordPages,
  },
  // dns_serial: a new serial of a zone after a change of records; its id is the serial.
  changes: ["dns_record", "dns_serial"],
});
