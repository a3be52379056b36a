import { z } from "zod";
import type { Account } from "../../control/accounts/accounts.ts";
import { operationsFor } from "../../control/api/operation.ts";
import type { Actor } from "../../control/access/actor.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { plans } from "../../control/zones/plans.ts";
import type { Zone } from "../../control/zones/zone.ts";
import { hoursKept, type Analytics } from "./analytics.ts";
import { smartRoutingErrors } from "./errors.ts";
import { boundsMs, type Histogram } from "./histogram.ts";
import type { Zones } from "../../control/zones/zones.ts";
import { smartRoutingErrorCodes } from "./api-errors.ts";

/** The services that these operations use. */
interface Services {
  smartRouting: Analytics;
  zones: Zones;
}

const { operation } = operationsFor<Services>(smartRoutingErrorCodes);

const SettingSchema = z
  .object({
    id: z.literal("smart_routing"),
    value: z.enum(["on", "off"]),
    editable: z.boolean(),
    modified_on: z.string().meta({ format: "date-time" }),
  })
  .meta({ id: "SmartRoutingSetting" });

/** Why the setting cannot be changed, for the error message; undefined when it can. */
function obstacle(zone: Zone, account: Account, actor: Actor): string | undefined {
  if (!plans[zone.plan].smartRouting) return `the plan "${zone.plan}" does not include smart routing`;
  if (!account.hasBilling) return "billing is not configured for the account";
  if (!actor.can("smart_routing:edit", { zoneId: zone.id, accountId: zone.accountId })) {
    return 'the credentials lack "Smart Routing Write" on the zone';
  }
  return undefined;
}

const settingResource = (zone: Zone, account: Account, actor: Actor): z.input<typeof SettingSchema> => ({
  id: "smart_routing",
  value: zone.smartRouting,
  editable: obstacle(zone, account, actor) === undefined,
  // Before the first change, the zone's creation time, so that the field is always present and stable.
  modified_on: isoTime(zone.smartRoutingModifiedOn ?? zone.createdOn),
});

const getSmartRouting = operation({
  id: "smart_routing_get",
  method: "GET",
  path: "/zones/{zone_id}/edge/smart_routing",
  summary: "Get the zone's smart-routing setting",
  access: { scope: "zone", permission: "smart_routing:read" },
  result: SettingSchema,
  handle: async ({ zone, account, actor }) => settingResource(zone, account, actor),
});

const editSmartRouting = operation({
  id: "smart_routing_edit",
  method: "PATCH",
  path: "/zones/{zone_id}/edge/smart_routing",
  summary: "Enable or disable smart routing for the zone",
  access: { scope: "zone", permission: "smart_routing:edit" },
  body: z.strictObject({ value: z.enum(["on", "off"]) }),
  result: SettingSchema,
  async handle({ body, zone, account, actor, services }) {
    const why = obstacle(zone, account, actor);
    if (why !== undefined) throw smartRoutingErrors.notEditable(why);
    return settingResource(await services.zones.setSmartRouting(zone, body.value), account, actor);
  },
});

const milliseconds = z.number().nullable();
const SeriesSchema = z.object({
  requests: z.int(),
  mean_ms: milliseconds,
  p50_ms: milliseconds,
  p95_ms: milliseconds,
  p99_ms: milliseconds,
  /** One for each bound, and one for times above the last bound. */
  counts: z.array(z.int()),
});

const AnalyticsSchema = z
  .object({
    since: z.string().meta({ format: "date-time" }),
    until: z.string().meta({ format: "date-time" }),
    ttfb_bounds_ms: z.array(z.number()),
    smart: SeriesSchema,
    direct: SeriesSchema,
    /**
     * Ratio of the median times to first byte with and without smart routing; null while there are too few
     * requests.
     */
    p50_ratio: z.number().nullable(),
    hedged_requests: z.int(),
    failed_requests: z.int(),
    paths: z.array(
      z.object({
        path: z.string(),
        /** Paths with the same number lead to the same origin. */
        origin: z.int(),
        address: z.string(),
        port: z.int(),
        /** Null for the direct path. */
        relay: z.string().nullable(),
        current: z.boolean(),
        ejected: z.boolean(),
        ejected_until: z.string().meta({ format: "date-time" }).nullable(),
        ttfb_ms: milliseconds,
        /** Of the last 64 requests on the path. */
        p50_ms: milliseconds,
        p90_ms: milliseconds,
        p99_ms: milliseconds,
        in_flight: z.int(),
        requests: z.int(),
        failures: z.int(),
      }),
    ),
  })
  .meta({ id: "SmartRoutingAnalytics" });

/** Fewer requests yield no ratio. */
const requestsMin = 500;
const controlRequestsMin = 10;

const series = (histogram: Histogram): z.input<typeof SeriesSchema> => ({
  requests: histogram.count,
  mean_ms: rounded(histogram.meanMs),
  p50_ms: rounded(histogram.quantile(0.5)),
  p95_ms: rounded(histogram.quantile(0.95)),
  p99_ms: rounded(histogram.quantile(0.99)),
  counts: histogram.counts,
});
const rounded = (value: number | undefined): number | null =>
  value === undefined ? null : Math.round(value * 100) / 100;

const getAnalytics = operation({
  id: "smart_routing_analytics",
  method: "GET",
  path: "/zones/{zone_id}/edge/smart_routing/analytics",
  summary: "Get the effect of smart routing on this node in the last 48 hours",
  access: { scope: "zone", permission: "smart_routing:read" },
  result: AnalyticsSchema,
  async handle({ zone, services }) {
    const untilMs = Date.now();
    const { smart, direct, hedges, failures } = services.smartRouting.zone(zone.id).recent(untilMs);
    const isEnough = smart.count + direct.count >= requestsMin && direct.count >= controlRequestsMin;
    return {
      since: isoTime(untilMs - hoursKept * 3_600_000),
      until: isoTime(untilMs),
      ttfb_bounds_ms: [...boundsMs],
      smart: series(smart),
      direct: series(direct),
      p50_ratio: isEnough ? rounded(smart.quantile(0.5)! / direct.quantile(0.5)!) : null,
      hedged_requests: hedges,
      failed_requests: failures,
      paths: services.smartRouting.pathsOf(zone.id).map((each) => ({
        path: each.path,
        origin: each.origin,
        address: each.address,
        port: each.port,
        relay: each.relay ?? null,
        current: each.isCurrent,
        ejected: each.isEjected,
        ejected_until: each.isEjected ? isoTime(untilMs + each.ejectedForMs) : null,
        ttfb_ms: rounded(each.ttfbMs),
        p50_ms: rounded(each.quantilesMs[0]),
        p90_ms: rounded(each.quantilesMs[1]),
        p99_ms: rounded(each.quantilesMs[2]),
        in_flight: each.inFlight,
        requests: each.requests,
        failures: each.failures,
      })),
    };
  },
});

export const smartRoutingOperations = [getSmartRouting, editSmartRouting, getAnalytics];
