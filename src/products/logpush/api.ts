import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { clock } from "../../platform/timers/clock.ts";
import { logpushErrorCodes } from "./api-errors.ts";
import { ChangeSchema, CreateSchema, JobSchema, jobResource, type ChangeBody } from "./api-schema.ts";
import { validationOperations } from "./api-validate.ts";
import { dataSets } from "./data-sets/data-sets.ts";
import { UploadFault } from "./destination/send.ts";
import { logpushErrors } from "./errors.ts";
import type { JobInput, JobOwner } from "./job.ts";
import { dataSetInPath, destinationOf, jobInput } from "./job-input.ts";
import {
  accessOf,
  baseOf,
  idOf,
  ownerOf,
  scopes,
  type LogpushServices,
  type Scope,
} from "./logpush-services.ts";

const { operation } = operationsFor<LogpushServices>(logpushErrorCodes);

/** Tests a new destination with a small file, and checks the ownership token if there is one. */
async function checkDestination(
  { logpushOwnership }: LogpushServices,
  owner: JobOwner,
  { destination: text }: JobInput,
  { ownership_challenge: token }: ChangeBody,
): Promise<void> {
  const destination = destinationOf(text);
  if (typeof token === "string" && token !== "" && !logpushOwnership.isToken(owner, destination, token))
    throw logpushErrors.challenge();
  try {
    await logpushOwnership.tryOut(destination, clock.now());
  } catch (error) {
    if (error instanceof UploadFault) throw logpushErrors.unreachable(error.message);
    throw error;
  }
}

const pathOf = (scope: Scope): string => `${baseOf(scope)}/jobs`;

const readingOperations = (scope: Scope) => {
  const read = accessOf(scope, "read");
  return [
    operation({
      id: `${idOf(scope)}_job_list`,
      method: "GET",
      path: pathOf(scope),
      summary: `List the Logpush jobs of the ${scope}`,
      access: read,
      result: z.array(JobSchema),
      handle: async (call) => (await call.services.logpushJobs.list(ownerOf(scope, call))).map(jobResource),
    }),
    operation({
      id: `${idOf(scope)}_job_get`,
      method: "GET",
      path: `${pathOf(scope)}/{job_id}`,
      summary: `Get a Logpush job of the ${scope}`,
      access: read,
      result: JobSchema,
      handle: async (call) =>
        jobResource(await call.services.logpushJobs.find(ownerOf(scope, call), call.params["job_id"]!)),
    }),
  ];
};

const changingOperations = (scope: Scope) => {
  const edit = accessOf(scope, "edit");
  return [
    operation({
      id: `${idOf(scope)}_job_create`,
      method: "POST",
      path: pathOf(scope),
      summary: `Create a Logpush job of the ${scope}, after a small file was uploaded to its destination as a test`,
      access: edit,
      body: CreateSchema,
      result: JobSchema,
      async handle(call) {
        const owner = ownerOf(scope, call);
        const input = jobInput(call.body, scope, dataSets);
        await call.services.logpushJobs.checkRoom(owner);
        await checkDestination(call.services, owner, input, call.body);
        return jobResource(await call.services.logpushJobs.create(owner, input));
      },
    }),
    operation({
      id: `${idOf(scope)}_job_update`,
      method: "PUT",
      path: `${pathOf(scope)}/{job_id}`,
      summary: `Change a Logpush job of the ${scope}; absent fields stay unchanged`,
      access: edit,
      body: ChangeSchema,
      result: JobSchema,
      async handle(call) {
        const owner = ownerOf(scope, call);
        const { logpushJobs } = call.services;
        const id = call.params["job_id"]!;
        const before = await logpushJobs.find(owner, id);
        const input = jobInput(call.body, scope, dataSets, before);
        if (input.destination !== before.destination)
          await checkDestination(call.services, owner, input, call.body);
        return jobResource(
          await logpushJobs.update(owner, id, (now) => jobInput(call.body, scope, dataSets, now)),
        );
      },
    }),
    operation({
      id: `${idOf(scope)}_job_delete`,
      method: "DELETE",
      path: `${pathOf(scope)}/{job_id}`,
      summary: `Delete a Logpush job of the ${scope}, and its events that are not uploaded yet`,
      access: edit,
      result: z.object({ id: z.int() }),
      async handle(call) {
        const { id } = await call.services.logpushJobs.delete(ownerOf(scope, call), call.params["job_id"]!);
        return { id };
      },
    }),
  ];
};

const dataSetOperations = (scope: Scope) => {
  const read = accessOf(scope, "read");
  return [
    operation({
      id: `${idOf(scope)}_dataset_jobs`,
      method: "GET",
      path: `${baseOf(scope)}/datasets/{dataset_id}/jobs`,
      summary: `List the Logpush jobs of the ${scope} for a data set`,
      access: read,
      result: z.array(JobSchema),
      async handle(call) {
        const dataSet = dataSetInPath(call.params["dataset_id"]!, scope, dataSets);
        const jobs = await call.services.logpushJobs.list(ownerOf(scope, call));
        return jobs.filter((job) => job.dataSet === dataSet).map(jobResource);
      },
    }),
    operation({
      id: `${idOf(scope)}_dataset_fields`,
      method: "GET",
      path: `${baseOf(scope)}/datasets/{dataset_id}/fields`,
      summary: "List the fields of a data set, with their descriptions",
      access: read,
      result: z.record(z.string(), z.string()),
      handle: async ({ params }) => ({
        ...dataSets[dataSetInPath(params["dataset_id"]!, scope, dataSets)].descriptions,
      }),
    }),
  ];
};

export const logpushOperations = [
  ...scopes.flatMap((scope) => [
    ...readingOperations(scope),
    ...changingOperations(scope),
    ...dataSetOperations(scope),
  ]),
  ...validationOperations,
];
