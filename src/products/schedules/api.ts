import { z } from "zod";
import { readJson } from "../../control/api/body.ts";
import { expected, tagOf } from "../../control/api/if-match.ts";
import { operationsFor } from "../../control/api/operation.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { schedulesOfScriptMax } from "./schedule.ts";
import type { PlannedSchedule, Schedules } from "./schedules.ts";
import type { Scripts } from "../../workers/scripts/scripts.ts";
import { scheduleErrorCodes } from "./api-errors.ts";

/** The services that these operations use. */
interface Services {
  schedules: Schedules;
  scripts: Scripts;
}

const { operation } = operationsFor<Services>(scheduleErrorCodes);

const ScheduleSchema = z
  .object({
    cron: z.string(),
    created_on: z.string(),
    modified_on: z.string(),
    /** Minutes that passed while no node was running; they are not run later. */
    missed_runs: z.int(),
    last_missed_on: z.string().nullable(),
  })
  .meta({ id: "Schedule" });
const SchedulesSchema = z.object({ schedules: z.array(ScheduleSchema) });
const InputSchema = z
  .array(
    z.strictObject({
      cron: z.string().min(1).max(255),
      // Computed fields, which clients send back unchanged.
      created_on: z.string().optional(),
      modified_on: z.string().optional(),
      missed_runs: z.int().optional(),
      last_missed_on: z.string().nullable().optional(),
    }),
  )
  .max(schedulesOfScriptMax);

const result = (schedules: readonly PlannedSchedule[]): z.input<typeof SchedulesSchema> => ({
  schedules: schedules.map(({ cron, createdOn, modifiedOn, missedRuns, lastMissedOn }) => ({
    cron,
    created_on: isoTime(createdOn),
    modified_on: isoTime(modifiedOn),
    missed_runs: missedRuns,
    last_missed_on: lastMissedOn === null ? null : isoTime(lastMissedOn),
  })),
});

/** Their order has no meaning. */
const schedulesTag = (crons: readonly string[]): string => tagOf(crons.toSorted());

const path = "/accounts/{account_id}/workers/scripts/{script_name}/schedules";

export const scheduleOperations = [
  operation({
    id: "script_schedules_get",
    method: "GET",
    path,
    summary: "List the schedules of a script",
    access: { scope: "account", permission: "workers_scripts:read" },
    result: SchedulesSchema,
    async handle(call) {
      const { account, params, services } = call;
      const { name } = services.scripts.get({ accountId: account.id }, params["script_name"]!);
      const schedules = services.schedules.list(account.id, name);
      call.etag = schedulesTag(schedules.map(({ cron }) => cron));
      return result(schedules);
    },
  }),
  operation({
    id: "script_schedules_put",
    takesIfMatch: true,
    method: "PUT",
    path,
    summary: "Replace the schedules of a script",
    access: { scope: "account", permission: "workers_scripts:edit" },
    body: InputSchema,
    bodyKind: "own",
    acceptAnyContentType: true,
    result: SchedulesSchema,
    async handle(call) {
      const { account, params, services, incoming } = call;
      const input = await readJson(incoming, InputSchema, 256 * 1024);
      const crons = input.map(({ cron }) => cron.trim());
      const check = expected(incoming);
      const name = params["script_name"]!;
      const schedules = await services.schedules.replace(account.id, name, crons, (before) =>
        check(schedulesTag(before)),
      );
      call.etag = schedulesTag(crons);
      return result(schedules);
    },
  }),
];
