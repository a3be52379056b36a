import { z } from "zod";
import { readJson } from "../../../control/api/body.ts";
import { apiErrors } from "../../../control/api/errors.ts";
import { operationsFor } from "../../../control/api/operation.ts";
import { pageQuery } from "../../../control/api/pagination.ts";
import type { InstanceRow } from "../instance.ts";
import type { NewInstanceInput, Instances } from "../instances.ts";
import {
  CreatedSchema,
  instanceResource,
  InstanceSchema,
  readRetention,
  RetentionSchema,
  statusResource,
  StatusResultSchema,
  StatusSchema,
  waitQuery,
} from "./resource.ts";
import { finalStatuses, statuses } from "../transitions.ts";
import { encode } from "../worker/codec.ts";
import { codeOf, workflowErrorCodes } from "./api-errors.ts";
import { isTemporary, WorkflowError, workflowErrors } from "../errors.ts";
import { workflowLimits, type Workflow } from "../workflow.ts";
import type { Workflows } from "../workflows.ts";

/** The services that these operations use. */
interface Services {
  workflowInstances: Instances;
  workflows: Workflows;
}

const { operation } = operationsFor<Services>(workflowErrorCodes);

/** Operations on the instances of a workflow: create, list, and bulk changes. */
const base = "/accounts/{account_id}/workflows/{workflow_name}/instances";
const read = { scope: "account", permission: "workers_scripts:read" } as const;
const edit = { scope: "account", permission: "workers_scripts:edit" } as const;

const locations = ["wnam", "enam", "sam", "weur", "eeur", "apac", "oc", "afr", "me"] as const;
const CreateSchema = z.strictObject({
  id: z.string().optional(),
  instance_id: z.string().optional(),
  params: z.json().optional(),
  retention: z.union([z.int().min(0), z.string().max(64)]).optional(),
  instance_retention: RetentionSchema.optional(),
  // An installation has one location, so every hint is accepted.
  location_hint: z.enum(locations).optional(),
});
const IdsSchema = z.array(z.string().min(1).max(271)).min(1).max(workflowLimits.batchMax);
const bodyBytesMax = 2 * 1024 * 1024;

function inputOf(body: z.output<typeof CreateSchema>): NewInstanceInput {
  if (body.id !== undefined && body.instance_id !== undefined && body.id !== body.instance_id)
    throw apiErrors.invalid("Expected one of id and instance_id but received both", "/body/id");
  return {
    id: body.instance_id ?? body.id,
    params: encode(paramsOf(body.params), "params"),
    retention: {
      ...readRetention(body.retention, "/body/retention"),
      ...readRetention(body.instance_retention, "/body/instance_retention"),
    },
  };
}

/** The official clients send the parameters as JSON text; other clients send the value itself. */
function paramsOf(params: z.output<typeof CreateSchema>["params"]): unknown {
  if (params === undefined) return {};
  if (typeof params !== "string") return params;
  try {
    return JSON.parse(params) as unknown;
  } catch {
    return params;
  }
}

export async function versionIdOf(services: Services, { versionRid }: InstanceRow): Promise<string> {
  const found = await services.workflows.version(versionRid);
  if (found === undefined) throw workflowErrors.versionNotFound();
  return found.version.id;
}

async function createdResource(
  services: Services,
  workflow: Workflow,
  row: InstanceRow,
): Promise<z.input<typeof CreatedSchema>> {
  return {
    id: row.id,
    status: "queued",
    version_id: await versionIdOf(services, row),
    workflow_id: workflow.id,
    trigger_source: row.trigger,
  };
}

const terminating = new Set<string>();

export const instanceOperations = [
  operation({
    id: "workflow_instance_create",
    audit: "ahead",
    method: "POST",
    path: base,
    summary:
      "Create an instance, which is durable once this returns. With wait, the response comes at the end of the instance, or after so many seconds",
    access: edit,
    query: waitQuery,
    acceptAnyContentType: true,
    bodyOptional: true,
    bodyBytesMax,
    body: CreateSchema,
    result: CreatedSchema.extend(StatusResultSchema.partial().shape),
    async handle({ account, params, query, body, services }) {
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      const row = await services.workflowInstances.create(workflow, inputOf(body), "api");
      const created = await createdResource(services, workflow, row);
      if (query.wait === 0) return created;
      const ended = await services.workflowInstances.outcome(workflow, row, query.wait * 1000);
      return { ...created, ...statusResource(ended) };
    },
  }),
  operation({
    id: "workflow_instance_create_batch",
    audit: "ahead",
    method: "POST",
    path: `${base}/batch`,
    summary: "Create up to 100 instances, all or none; ids that exist already are skipped",
    access: edit,
    acceptAnyContentType: true,
    bodyKind: "own",
    body: z.array(CreateSchema).min(1).max(workflowLimits.batchMax),
    result: z.array(CreatedSchema),
    async handle({ account, params, incoming, services }) {
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      const schema = z.array(CreateSchema).min(1).max(workflowLimits.batchMax);
      const bodies = await readJson(incoming, schema, bodyBytesMax);
      const created = await services.workflowInstances.createBatch(workflow, bodies.map(inputOf), "api");
      const rows = created.flatMap((each) => ("row" in each ? [each.row] : []));
      return Promise.all(rows.map(async (row) => createdResource(services, workflow, row)));
    },
  }),
  operation({
    id: "workflow_instance_list",
    method: "GET",
    path: base,
    summary: "List instances, newest first; the total stops at 10,000",
    access: read,
    query: pageQuery({ default: 50, max: 100 }).extend({
      page: z.coerce.number().int().min(1).max(1_000_000).optional(),
      cursor: z.string().max(32).optional(),
      status: StatusSchema.optional(),
      date_start: z.iso.datetime({ offset: true }).optional(),
      date_end: z.iso.datetime({ offset: true }).optional(),
      direction: z.enum(["asc", "desc"]).default("desc"),
    }),
    result: z.array(InstanceSchema),
    async handle(call) {
      const { account, params, query, services } = call;
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      const { page, cursor, per_page, status, date_start, date_end, direction } = query;
      if (page !== undefined && cursor !== undefined)
        throw apiErrors.invalid("Expected one of page and cursor but received both", "/query/cursor");
      if (cursor !== undefined && !/^[1-9]\d{0,14}$/.test(cursor))
        throw apiErrors.invalid(
          `Expected a cursor of an earlier answer but received ${JSON.stringify(cursor)}`,
          "/query/cursor",
        );
      const { instances, total } =
        status === "rollingBack"
          ? { instances: [], total: 0 }
          : await services.workflowInstances.list(
              workflow,
              {
                status,
                createdFrom: date_start === undefined ? undefined : Date.parse(date_start),
                createdTo: date_end === undefined ? undefined : Date.parse(date_end),
              },
              {
                limit: per_page,
                offset: ((page ?? 1) - 1) * per_page,
                after: cursor === undefined ? undefined : Number(cursor),
                direction,
              },
            );
      call.resultInfo = {
        ...(page === undefined ? {} : { page, total_pages: Math.ceil(total / per_page) }),
        per_page,
        count: instances.length,
        total_count: total,
        ...(instances.length < per_page ? {} : { cursor: String(instances.at(-1)!.rid) }),
      };
      return Promise.all(
        instances.map(async (row) => instanceResource(row, workflow, await versionIdOf(services, row))),
      );
    },
  }),
  operation({
    id: "workflow_instance_delete_batch",
    audit: "ahead",
    method: "POST",
    path: `${base}/batch/delete`,
    summary: "Stop and delete up to 100 instances",
    access: edit,
    acceptAnyContentType: true,
    body: z.strictObject({ instances: IdsSchema }),
    result: z.object({
      deleted: z.array(z.object({ id: z.string() })),
      errors: z.array(z.object({ id: z.string(), code: z.int(), message: z.string() })),
    }),
    async handle({ account, params, body, services }) {
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      const deleted: { id: string }[] = [];
      const errors: { id: string; code: number; message: string }[] = [];
      await Promise.all(
        body.instances.map(async (id) => {
          try {
            await services.workflowInstances.delete(workflow, id);
            deleted.push({ id });
          } catch (error) {
            if (!(error instanceof WorkflowError)) throw error;
            errors.push({ id, code: codeOf(error), message: error.message });
          }
        }),
      );
      return { deleted, errors };
    },
  }),
  operation({
    id: "workflow_instance_terminate_batch",
    audit: "ahead",
    method: "POST",
    path: `${base}/batch/terminate`,
    summary: "Terminate up to 100 instances; instances that have ended are skipped",
    access: edit,
    acceptAnyContentType: true,
    bodyKind: "own",
    body: IdsSchema,
    result: z.object({ status: z.enum(["ok", "already_running"]), instancesTerminated: z.int() }),
    async handle({ account, params, incoming, services }) {
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      const ids = await readJson(incoming, IdsSchema, bodyBytesMax);
      const done = await Promise.all(
        ids.map(async (id) =>
          services.workflowInstances.control(workflow, id, "terminate").then(
            () => 1,
            (error: unknown) => {
              if (error instanceof WorkflowError && !isTemporary(error)) return 0;
              throw error;
            },
          ),
        ),
      );
      return {
        status: "ok" as const,
        instancesTerminated: done.reduce<number>((sum, count) => sum + count, 0),
      };
    },
  }),
  operation({
    id: "workflow_instance_terminate_all",
    audit: "ahead",
    method: "PUT",
    path: `${base}/terminate`,
    summary: "Terminate all instances of a workflow, or all that have one status",
    access: edit,
    query: z.object({
      status: z.enum(statuses.filter((status) => !finalStatuses.includes(status))).optional(),
    }),
    result: z.object({ status: z.enum(["ok", "already_running"]), instancesTerminated: z.int() }),
    async handle({ account, params, query, services }) {
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      if (terminating.has(workflow.id)) return { status: "already_running" as const, instancesTerminated: 0 };
      terminating.add(workflow.id);
      try {
        const which = statuses.filter((status) =>
          query.status === undefined ? !finalStatuses.includes(status) : status === query.status,
        );
        const count = await services.workflowInstances.forAll(workflow, "terminate", which);
        return { status: "ok" as const, instancesTerminated: count };
      } finally {
        terminating.delete(workflow.id);
      }
    },
  }),
  operation({
    id: "workflow_instance_terminate_status",
    method: "GET",
    path: `${base}/terminate`,
    summary: "Get whether all instances of a workflow are being terminated",
    access: read,
    result: z.object({ status: z.enum(["running", "not_running"]) }),
    async handle({ account, params, services }) {
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      return { status: terminating.has(workflow.id) ? ("running" as const) : ("not_running" as const) };
    },
  }),
];
