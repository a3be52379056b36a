import type { Access, Call } from "../../control/api/operation.ts";
import type { BucketOwnership } from "./destination/ownership.ts";
import type { JobOwner } from "./job.ts";
import type { LogpushJobs } from "./jobs.ts";

/** The services that the operations use. */
export interface LogpushServices {
  logpushJobs: LogpushJobs;
  logpushOwnership: BucketOwnership;
}

/** Jobs belong to zones or to accounts. Each operation exists for both. */
export const scopes = ["zone", "account"] as const;
export type Scope = (typeof scopes)[number];

export const baseOf = (scope: Scope): string => `/${scope}s/{${scope}_id}/logpush`;
export const accessOf = (scope: Scope, level: "read" | "edit"): Access => ({
  scope,
  permission: scope === "zone" ? `logs:${level}` : `account_logs:${level}`,
});
/** The start of the ids of operations. */
export const idOf = (scope: Scope): string => (scope === "zone" ? "zone_logpush" : "account_logpush");

export const ownerOf = (
  scope: Scope,
  { account, zone }: Pick<Call<unknown, unknown, object>, "account" | "zone">,
): JobOwner => ({ accountId: account.id, zoneId: scope === "zone" ? zone.id : undefined });
