import { z } from "zod";
import { readJson } from "../../../control/api/body.ts";
import { apiErrors } from "../../../control/api/errors.ts";
import { operationsFor, type Call } from "../../../control/api/operation.ts";
import { queryFlag } from "../../../control/api/pagination.ts";
import { isoTime } from "../../../platform/util/ids.ts";
import { versionIdOf } from "./api-instances.ts";
import type { InstanceRow } from "../instance.ts";
import { follow } from "./follow.ts";
import { timelinePage } from "./page.ts";
import {
  DetailsSchema,
  detailsResource,
  ErrorSchema,
  statusResource,
  StatusResultSchema,
  StatusSchema,
  waitQuery,
} from "./resource.ts";
import { outputOf, shownError } from "./timeline.ts";
import { encode } from "../worker/codec.ts";
import { workflowErrorCodes } from "./api-errors.ts";
import { workflowErrors } from "../errors.ts";
import type { Workflow } from "../workflow.ts";
import type { Instances } from "../instances.ts";
import type { Workflows } from "../workflows.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** The services that these operations use. */
interface Services {
  workflowInstances: Instances;
  workflows: Workflows;
}

const { operation, rawOperation } = operationsFor<Services>(workflowErrorCodes);

/** Operations on one instance: read it, change its status, send it events, follow it. */
const base = "/accounts/{account_id}/workflows/{workflow_name}/instances/{instance_id}";
const read = { scope: "account", permission: "workers_scripts:read" } as const;
const edit = { scope: "account", permission: "workers_scripts:edit" } as const;
const eventBytesMax = 2 * 1024 * 1024;
const SentSchema = z.object({ instanceId: z.string(), timestamp: z.string().meta({ format: "date-time" }) });
const sent = (instanceId: string): z.input<typeof SentSchema> => ({
  instanceId,
  timestamp: isoTime(clock.now()),
});

const workflowOf = ({ account, params, services }: Call<unknown, unknown, Services>): Workflow =>
  services.workflows.get(account.id, params["workflow_name"]!);
const instanceOf = async (call: Call<unknown, unknown, Services>): Promise<InstanceRow> =>
  call.services.workflowInstances.get(workflowOf(call), call.params["instance_id"]!);

export const oneInstanceOperations = [
  operation({
    id: "workflow_instance_get",
    method: "GET",
    path: base,
    summary: "Get an instance with its steps, their attempts and results; long results are cut",
    access: read,
    query: z.object({ order: z.enum(["asc", "desc"]).default("asc"), simple: queryFlag.default(false) }),
    result: DetailsSchema,
    async handle(call) {
      const row = await instanceOf(call);
      const history = await call.services.workflowInstances.history(row);
      return detailsResource(row, history, await versionIdOf(call.services, row), call.query);
    },
  }),
  operation({
    id: "workflow_instance_status",
    method: "GET",
    path: `${base}/status`,
    summary:
      "Get an instance's status, with its output or error once it has ended; wait is the longest time to wait for that, in seconds",
    access: read,
    query: waitQuery,
    result: StatusResultSchema,
    async handle(call) {
      const { params, query, services } = call;
      const id = params["instance_id"]!;
      return statusResource(await services.workflowInstances.ended(workflowOf(call), id, query.wait * 1000));
    },
  }),
  operation({
    id: "workflow_instance_status_edit",
    audit: "ahead",
    method: "PATCH",
    path: `${base}/status`,
    summary: "Pause, resume, terminate or restart an instance",
    access: edit,
    acceptAnyContentType: true,
    body: z.strictObject({
      status: z.enum(["pause", "resume", "terminate", "restart"]),
      rollback: z.literal(false).optional(),
      from: z
        .strictObject({
          name: z.string().min(1).max(256),
          count: z.int().min(1).default(1),
          type: z.enum(["do", "sleep", "waitForEvent"]).default("do"),
        })
        .optional(),
    }),
    result: z.object({ status: StatusSchema, timestamp: z.string().meta({ format: "date-time" }) }),
    async handle(call) {
      const { params, body, services } = call;
      const id = params["instance_id"]!;
      if (body.from !== undefined && body.status !== "restart")
        throw apiErrors.invalid('Expected from only when status is "restart"', "/body/from");
      const from = body.from && { name: body.from.name, count: body.from.count, kind: body.from.type };
      const workflow = workflowOf(call);
      const { workflowInstances } = services;
      const row = await (body.status === "restart"
        ? workflowInstances.restart(workflow, id, from)
        : workflowInstances.control(workflow, id, body.status));
      return { status: row.status, timestamp: isoTime(clock.now()) };
    },
  }),
  operation({
    id: "workflow_instance_event",
    audit: "ahead",
    method: "POST",
    path: `${base}/events`,
    summary:
      "Send an event to an instance; the event is durable once this returns, even when no step waits for it yet",
    access: edit,
    acceptAnyContentType: true,
    bodyBytesMax: eventBytesMax,
    body: z.strictObject({ type: z.string(), payload: z.json().optional() }),
    result: SentSchema,
    async handle(call) {
      const { params, body, services } = call;
      const payload = encode(body.payload ?? null, "payload");
      await services.workflowInstances.sendEvent(
        workflowOf(call),
        params["instance_id"]!,
        body.type,
        payload,
      );
      return sent(params["instance_id"]!);
    },
  }),
  operation({
    id: "workflow_instance_event_of_type",
    audit: "ahead",
    method: "POST",
    path: `${base}/events/{event_type}`,
    summary: "Send an event whose payload is the whole body",
    access: edit,
    acceptAnyContentType: true,
    bodyKind: "own",
    body: z.json(),
    result: SentSchema,
    async handle(call) {
      const { params, incoming, services } = call;
      const workflow = workflowOf(call);
      await services.workflowInstances.get(workflow, params["instance_id"]!);
      const payload =
        incoming.headers["content-length"] === "0" || isBodyless(incoming.headers)
          ? null
          : await readJson(incoming, z.json(), eventBytesMax);
      const text = encode(payload, "payload");
      await services.workflowInstances.sendEvent(
        workflow,
        params["instance_id"]!,
        params["event_type"]!,
        text,
      );
      return sent(params["instance_id"]!);
    },
  }),
  operation({
    id: "workflow_instance_step",
    method: "GET",
    path: `${base}/step`,
    summary: "Get the whole result of one step, or its error",
    access: read,
    query: z.object({
      name: z.string().min(1).optional(),
      type: z.enum(["step", "waitForEvent"]).default("step"),
      attempt: z.coerce.number().int().min(1).optional(),
    }),
    result: z.object({
      status: z.enum(["running", "waiting", "complete", "errored"]),
      error: ErrorSchema.nullable(),
      output: z.json(),
      event_type: z.string().optional(),
    }),
    async handle(call) {
      const { name, type, attempt } = call.query;
      if (type === "waitForEvent" && attempt !== undefined)
        throw apiErrors.invalid("Expected attempt only when type is step", "/query/attempt");
      const row = await instanceOf(call);
      if (name === undefined)
        throw apiErrors.invalid(
          "Expected the name of a step with its count for name, which is required",
          "/query/name",
        );
      const history = await call.services.workflowInstances.history(row);
      const entry = history.get(`${type === "step" ? "do" : type}:${name}`);
      if (entry === undefined) throw workflowErrors.stepNotFound(name);
      const chosen =
        attempt === undefined ? undefined : entry.attempts.find(({ number }) => number === attempt);
      if (attempt !== undefined && chosen === undefined)
        throw workflowErrors.stepNotFound(`${name}, attempt ${attempt}`);
      const isLast = chosen === undefined || chosen === entry.attempts.at(-1);
      const failed = entry.outcome !== undefined && "error" in entry.outcome ? entry.outcome.error : null;
      const error = shownError(
        chosen === undefined ? (failed ?? entry.attempts.at(-1)?.error) : chosen.error,
      );
      const isOver = chosen === undefined ? entry.outcome !== undefined : chosen.endedOn !== null;
      return {
        status: isOver
          ? (chosen === undefined ? failed : chosen.error) === null
            ? ("complete" as const)
            : ("errored" as const)
          : type === "step"
            ? ("running" as const)
            : ("waiting" as const),
        error,
        output: (isLast ? outputOf(entry) : null) as z.input<typeof StatusResultSchema>["output"],
        ...(type === "waitForEvent" ? { event_type: entry.eventType ?? "" } : {}),
      };
    },
  }),
  operation({
    id: "workflow_instance_delete",
    audit: "ahead",
    hidesBefore: true,
    method: "DELETE",
    path: base,
    summary: "Stop and delete an instance",
    access: edit,
    result: SentSchema,
    async handle(call) {
      const id = call.params["instance_id"]!;
      await call.services.workflowInstances.delete(workflowOf(call), id);
      return sent(id);
    },
  }),
  rawOperation({
    id: "workflow_instance_timeline",
    method: "GET",
    path: `${base}/timeline`,
    summary: "Get an instance's steps as an HTML page",
    access: read,
    async handle(call) {
      const row = await instanceOf(call);
      const history = await call.services.workflowInstances.history(row);
      return new Response(timelinePage(workflowOf(call), row, history), {
        headers: {
          "content-type": "text/html; charset=utf-8",
          "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
        },
      });
    },
  }),
  rawOperation({
    id: "workflow_instance_subscribe",
    method: "GET",
    path: `${base}/subscribe`,
    summary: "Follow an instance: one server-sent event for each change, until the instance ends",
    access: read,
    async handle(call) {
      const row = await instanceOf(call);
      const workflow = workflowOf(call);
      const { services } = call;
      const stream = follow(services.workflowInstances.state, row.rid, async () => {
        const now = await services.workflowInstances.getSame(workflow, row);
        const history = await services.workflowInstances.history(now);
        const versionId = await versionIdOf(services, now);
        return detailsResource(now, history, versionId, { order: "asc", simple: false });
      });
      return new Response(stream, {
        headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
      });
    },
  }),
];

const isBodyless = (headers: Record<string, unknown>): boolean =>
  headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
