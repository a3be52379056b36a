import { declare, table } from "../../declaration.ts";
import type { AuditLogsTable, AuditLogTailTable } from "./tables.ts";

/** The audit log. */
export const declaration = declare({
  settings: {
    auditRetentionDays: {
      kind: "count",
      min: 1,
      max: 3650,
      flag: "audit-retention-days",
      env: "SELVEDGE_AUDIT_RETENTION_DAYS",
      default: 30,
      describe: "how long the audit log keeps an entry",
    },
  },
  tables: {
    audit_logs: table<AuditLogsTable>(),
    audit_log_tail: table<AuditLogTailTable>(),
  },
  migrations: {
    "0025-audit-logs": async () => (await import("./migrations/0025-audit-logs.ts")).auditLogs,
    "0032-audit-log-key": async () => (await import("./migrations/0032-audit-log-key.ts")).auditLogKey,
    "0036-audit-log-tail": async () => (await import("./migrations/0036-audit-log-tail.ts")).auditLogTail,
  },
});
