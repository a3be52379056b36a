import { z } from "zod";
import { operationsFor } from "../api/operation.ts";
import type { NodeFigures } from "../../platform/observability/figures.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { checkOwner, type OwnerServices } from "./api-owner-only.ts";

/** The services that this operation uses. */
interface Services extends OwnerServices {
  /** Undefined without `--metrics-listen`. */
  figures: (() => Promise<NodeFigures>) | undefined;
}

const { operation } = operationsFor<Services>();

const count = z.number();
const FiguresSchema = z
  .object({
    measured_on: z.string().meta({ format: "date-time" }),
    requests: count,
    failed_requests: count,
    p50_seconds: z.number().nullable(),
    p95_seconds: z.number().nullable(),
    api_calls: count,
    script_runs: count,
    failed_script_runs: count,
    cells: count,
    queue_messages: count,
    oldest_message_seconds: z.number(),
    late_alarms: count,
    workflow_lag_seconds: z.number(),
    disk_free_bytes: z.number().nullable(),
    failing_certificates: count,
    restarts: count,
    uncaught_exceptions: count,
  })
  .meta({ id: "NodeFigures", description: "The state of a node. Counts are since its start" });

const resource = (figures: NodeFigures): z.input<typeof FiguresSchema> => ({
  measured_on: isoTime(figures.measuredOn),
  requests: figures.requests,
  failed_requests: figures.failedRequests,
  p50_seconds: figures.p50Seconds,
  p95_seconds: figures.p95Seconds,
  api_calls: figures.apiCalls,
  script_runs: figures.scriptRuns,
  failed_script_runs: figures.failedScriptRuns,
  cells: figures.cells,
  queue_messages: figures.queueMessages,
  oldest_message_seconds: figures.oldestMessageSeconds,
  late_alarms: figures.lateAlarms,
  workflow_lag_seconds: figures.workflowLagSeconds,
  disk_free_bytes: figures.diskFreeBytes,
  failing_certificates: figures.failingCertificates,
  restarts: figures.restarts,
  uncaught_exceptions: figures.uncaughtExceptions,
});

export const overviewOperation = operation({
  id: "edge_overview",
  method: "GET",
  path: "/accounts/{account_id}/edge/overview",
  summary:
    "Get figures of the node that answers, from its metrics; null without --metrics-listen; only for the account of the owner",
  access: { scope: "account", permission: "account_settings:read" },
  result: z.object({ figures: FiguresSchema.nullable() }),
  async handle({ account, services }) {
    checkOwner(account.id, services, "The figures are");
    const { figures } = services;
    return { figures: figures === undefined ? null : resource(await figures()) };
  },
});
