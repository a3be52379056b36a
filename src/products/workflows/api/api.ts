import { z } from "zod";
import { operationsFor, type Operation } from "../../../control/api/operation.ts";
import { pageQuery, paginate } from "../../../control/api/pagination.ts";
import { isoTime } from "../../../platform/util/ids.ts";
import { instanceOperations } from "./api-instances.ts";
import { oneInstanceOperations } from "./api-instance.ts";
import {
  readRetention,
  RetentionSchema,
  VersionSchema,
  versionResource,
  WorkflowPutSchema,
  workflowResource,
  WorkflowSchema,
} from "./resource.ts";
import { workflowErrorCodes } from "./api-errors.ts";
import { workflowErrors } from "../errors.ts";
import { namePattern, workflowLimits, type Retention, type Workflow } from "../workflow.ts";
import type { Instances } from "../instances.ts";
import type { Workflows } from "../workflows.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** The services that these operations use. */
interface Services {
  workflowInstances: Instances;
  workflowStepsMax: number;
  workflows: Workflows;
}

const { listOperation, operation } = operationsFor<Services>(workflowErrorCodes);

const base = "/accounts/{account_id}/workflows";
const one = `${base}/{workflow_name}`;
const read = { scope: "account", permission: "workers_scripts:read" } as const;
const edit = { scope: "account", permission: "workers_scripts:edit" } as const;

const SettingsSchema = z.object({
  default_retention: z.object({ success_retention: z.int().optional(), error_retention: z.int().optional() }),
});
const settingsResource = ({ successMs, errorMs }: Retention): z.input<typeof SettingsSchema> => ({
  default_retention: {
    ...(successMs === null ? {} : { success_retention: successMs }),
    ...(errorMs === null ? {} : { error_retention: errorMs }),
  },
});

async function withCounts(
  services: Services,
  workflows: readonly Workflow[],
): Promise<z.input<typeof WorkflowSchema>[]> {
  const { byStatus, triggeredOn } = await services.workflowInstances.counts(workflows);
  return workflows.map((workflow) =>
    workflowResource(
      workflow,
      byStatus.get(workflow.rid),
      triggeredOn.get(workflow.rid),
      services.workflows
        .schedules(workflow)
        .map(({ cron, timetable }) => ({ cron, nextOn: timetable.next(clock.now()) })),
    ),
  );
}

/** This platform draws no graphs of steps; the operations exist and return null. */
const graphOperation = (name: "graph" | "dag"): Operation<Services> =>
  operation({
    id: `workflow_version_${name}`,
    method: "GET",
    path: `${one}/versions/{version_id}/${name}`,
    summary: "Get a version with its graph, which is always null",
    access: read,
    result: VersionSchema.extend({ graph: z.null() }),
    async handle({ account, params, services }) {
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      const version = await services.workflows.getVersion(workflow, params["version_id"]!);
      return { ...versionResource(workflow, version, services.workflowStepsMax), graph: null };
    },
  });

export const workflowOperations = [
  listOperation({
    id: "workflow_list",
    method: "GET",
    path: base,
    summary: "List workflows by name, with the number of their instances in each status",
    access: read,
    query: pageQuery({ default: 10, max: 100 }).extend({ search: z.string().max(64).optional() }),
    result: WorkflowSchema,
    async handle({ account, query, services }) {
      const { search } = query;
      const all = services.workflows
        .list(account.id)
        .filter(({ name }) => search === undefined || name.includes(search));
      const page = paginate(all, query);
      return { ...page, items: await withCounts(services, page.items) };
    },
  }),
  operation({
    id: "workflow_settings_get",
    method: "GET",
    path: `${base}/settings`,
    summary: "Get the account's settings of workflows",
    access: read,
    result: SettingsSchema,
    handle: async ({ account, services }) => settingsResource(services.workflows.settings(account.id)),
  }),
  operation({
    id: "workflow_settings_edit",
    method: "PATCH",
    path: `${base}/settings`,
    summary: "Set the retention of ended instances that neither the instance nor its workflow sets",
    access: edit,
    body: z.strictObject({ default_retention: RetentionSchema.optional() }),
    result: SettingsSchema,
    async handle({ account, body, services }) {
      const change = readRetention(body.default_retention, "/body/default_retention");
      return settingsResource(await services.workflows.changeSettings(account.id, change));
    },
  }),
  operation({
    id: "workflow_get",
    method: "GET",
    path: one,
    summary: "Get a workflow",
    access: read,
    result: WorkflowSchema,
    async handle({ account, params, services }) {
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      return (await withCounts(services, [workflow]))[0]!;
    },
  }),
  operation({
    id: "workflow_put",
    method: "PUT",
    path: one,
    summary: "Create a workflow, or change its script and class",
    access: edit,
    acceptAnyContentType: true,
    body: z.strictObject({
      script_name: z.string().min(1).max(255),
      class_name: z.string().min(1).max(255),
      limits: z.strictObject({ steps: z.int().min(1).max(workflowLimits.stepsMax).optional() }).optional(),
      default_retention: RetentionSchema.optional(),
      schedules: z
        .array(z.strictObject({ cron: z.string().max(256) }))
        .max(workflowLimits.schedulesMax)
        .optional(),
    }),
    result: WorkflowPutSchema,
    async handle({ account, params, body, services }) {
      const name = params["workflow_name"]!;
      if (!namePattern.test(name))
        throw workflowErrors.invalid(
          `Expected a name of 1 to 64 letters, digits, "_" and "-" but received ${JSON.stringify(name)}`,
        );
      const { successMs = null, errorMs = null } = readRetention(
        body.default_retention,
        "/body/default_retention",
      );
      const { workflow, version } = await services.workflows.put(account.id, name, {
        scriptName: body.script_name,
        className: body.class_name,
        stepsMax: body.limits?.steps ?? null,
        retention: { successMs, errorMs },
        crons: (body.schedules ?? []).map(({ cron }) => cron),
      });
      const { triggeredOn } = await services.workflowInstances.counts([workflow]);
      const triggered = triggeredOn.get(workflow.rid);
      return {
        id: workflow.id,
        name,
        class_name: workflow.className,
        script_name: workflow.scriptName,
        version_id: version.id,
        created_on: isoTime(workflow.createdOn),
        modified_on: isoTime(workflow.modifiedOn),
        triggered_on: triggered === undefined ? null : isoTime(triggered),
        is_deleted: 0 as const,
        terminator_running: 0 as const,
      };
    },
  }),
  operation({
    id: "workflow_delete",
    method: "DELETE",
    path: one,
    summary: "Stop and delete the instances of a workflow, its versions, and the workflow",
    access: edit,
    result: z.object({ status: z.literal("ok"), success: z.boolean().nullable() }),
    async handle({ account, params, services }) {
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      await services.workflows.delete(workflow);
      await services.workflowInstances.forAll(workflow, "remove");
      return { status: "ok" as const, success: true };
    },
  }),
  listOperation({
    id: "workflow_version_list",
    method: "GET",
    path: `${one}/versions`,
    summary: "List a workflow's versions, the newest first",
    access: read,
    query: pageQuery({ default: 50, max: 100 }),
    result: VersionSchema,
    async handle({ account, params, query, services }) {
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      const { versions, total } = await services.workflows.listVersions(workflow, query);
      return {
        items: versions.map((version) => versionResource(workflow, version, services.workflowStepsMax)),
        page: query.page,
        perPage: query.per_page,
        totalCount: total,
      };
    },
  }),
  operation({
    id: "workflow_version_get",
    method: "GET",
    path: `${one}/versions/{version_id}`,
    summary: "Get a version of a workflow",
    access: read,
    result: VersionSchema,
    async handle({ account, params, services }) {
      const workflow = services.workflows.get(account.id, params["workflow_name"]!);
      const version = await services.workflows.getVersion(workflow, params["version_id"]!);
      return versionResource(workflow, version, services.workflowStepsMax);
    },
  }),
  graphOperation("graph"),
  graphOperation("dag"),
  ...instanceOperations,
  ...oneInstanceOperations,
];
