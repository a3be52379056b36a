import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { sensitive } from "../../control/api/sensitive.ts";
import { clock } from "../../platform/timers/clock.ts";
import { logpushErrorCodes } from "./api-errors.ts";
import { DestinationSchema } from "./api-schema.ts";
import { dataSets } from "./data-sets/data-sets.ts";
import { locationOf } from "./destination/destination.ts";
import { UploadFault } from "./destination/send.ts";
import { logpushErrors } from "./errors.ts";
import { DomainError } from "../../platform/domain-error.ts";
import { destinationOf, jobInput } from "./job-input.ts";
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

const DestinationBody = z.strictObject({ destination_conf: DestinationSchema });
const ValiditySchema = z.object({ valid: z.boolean(), message: z.string() });

/** The result of a check that may fail. */
async function validity(check: () => Promise<unknown>): Promise<z.input<typeof ValiditySchema>> {
  try {
    await check();
    return { valid: true, message: "" };
  } catch (error) {
    if (error instanceof UploadFault || error instanceof DomainError)
      return { valid: false, message: error.message };
    throw error;
  }
}

const ownershipOf = (scope: Scope) => {
  const base = baseOf(scope);
  const edit = accessOf(scope, "edit");
  return [
    operation({
      id: `${idOf(scope)}_ownership`,
      method: "POST",
      path: `${base}/ownership`,
      summary: "Write a file with a token to the destination, which proves that the caller can read it",
      access: edit,
      audit: "ahead",
      body: DestinationBody,
      result: ValiditySchema.extend({ filename: z.string() }),
      async handle(call) {
        const destination = destinationOf(call.body.destination_conf);
        if (destination.kind === "https")
          throw logpushErrors.destination("Expected s3://…: https:// needs no proof of ownership");
        let filename = "";
        const { logpushOwnership } = call.services;
        const { valid, message } = await validity(async () => {
          filename = await logpushOwnership.challenge(ownerOf(scope, call), destination, clock.now());
        });
        return { filename, valid, message };
      },
    }),
    operation({
      id: `${idOf(scope)}_ownership_validate`,
      method: "POST",
      path: `${base}/ownership/validate`,
      summary: "Check the token of the file that was written to the destination",
      access: edit,
      audit: "none",
      body: DestinationBody.extend({ ownership_challenge: sensitive(z.string().min(1).max(512)) }),
      result: z.object({ valid: z.boolean() }),
      handle: async (call) => ({
        valid: call.services.logpushOwnership.isToken(
          ownerOf(scope, call),
          destinationOf(call.body.destination_conf),
          call.body.ownership_challenge,
        ),
      }),
    }),
  ];
};

const validationsOf = (scope: Scope) => {
  const base = baseOf(scope);
  const edit = accessOf(scope, "edit");
  return [
    operation({
      id: `${idOf(scope)}_validate_destination`,
      method: "POST",
      path: `${base}/validate/destination`,
      summary: "Upload a small file, to see whether a destination accepts files",
      access: edit,
      audit: "ahead",
      body: DestinationBody,
      result: ValiditySchema,
      handle: async ({ body, services }) =>
        validity(async () =>
          services.logpushOwnership.tryOut(destinationOf(body.destination_conf), clock.now()),
        ),
    }),
    operation({
      id: `${idOf(scope)}_validate_destination_exists`,
      method: "POST",
      path: `${base}/validate/destination/exists`,
      summary: `Tell whether a job of the ${scope} has this destination`,
      access: edit,
      audit: "none",
      body: DestinationBody,
      result: z.object({ exists: z.boolean() }),
      async handle(call) {
        const location = locationOf(destinationOf(call.body.destination_conf));
        const jobs = await call.services.logpushJobs.list(ownerOf(scope, call));
        return {
          exists: jobs.some(({ destination }) => locationOf(destinationOf(destination)) === location),
        };
      },
    }),
    operation({
      id: `${idOf(scope)}_validate_origin`,
      method: "POST",
      path: `${base}/validate/origin`,
      summary: "Check logpull_options, the older form of output_options",
      access: edit,
      audit: "none",
      body: z.strictObject({
        logpull_options: z.string().max(16_384).nullable(),
        dataset: z.string().max(64).optional(),
      }),
      result: ValiditySchema,
      handle: async ({ body }) =>
        validity(async () => {
          const dataset = body.dataset ?? defaultDataSet[scope];
          const { logpull_options } = body;
          jobInput({ logpull_options, dataset, destination_conf: "https://localhost" }, scope, dataSets);
        }),
    }),
  ];
};

const defaultDataSet: Record<Scope, string> = { zone: "http_requests", account: "audit_logs" };

export const validationOperations = scopes.flatMap((scope) => [
  ...ownershipOf(scope),
  ...validationsOf(scope),
]);
