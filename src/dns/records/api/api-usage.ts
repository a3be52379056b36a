import { z } from "zod";
import { operationsFor } from "../../../control/api/operation.ts";
import { dnsErrorCodes } from "./api-errors.ts";
import { dnsRead } from "../access.ts";
import { plans } from "../../../control/zones/plans.ts";
import type { DnsRecords } from "../records.ts";

/** The services that these operations use. */
interface Services {
  records: DnsRecords;
}

const { operation } = operationsFor<Services>(dnsErrorCodes);

const UsageSchema = z.object({ record_quota: z.int().nullable(), record_usage: z.int() });

const zoneUsage = operation({
  id: "dns_record_usage",
  method: "GET",
  path: "/zones/{zone_id}/dns_records/usage",
  summary: "Get the zone's number of records, and its quota",
  access: dnsRead,
  result: UsageSchema,
  handle: async ({ zone, services }) => ({
    record_quota: plans[zone.plan].dnsRecordsMax,
    record_usage: await services.records.count(zone),
  }),
});

const accountUsage = operation({
  id: "dns_record_account_usage",
  method: "GET",
  path: "/accounts/{account_id}/dns_records/usage",
  summary: "Get the number of records in all zones of the account. Quotas apply to zones",
  access: { scope: "account", permission: "account_settings:read" },
  result: UsageSchema,
  handle: async ({ account, services }) => ({
    record_quota: null,
    record_usage: await services.records.countOfAccount(account.id),
  }),
});

export const usageOperations = [zoneUsage, accountUsage];
