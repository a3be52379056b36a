import type { ServerResponse } from "node:http";
import { z } from "zod";
import type { Span } from "../../platform/tracing/spans/span.ts";
import { readJson } from "../../control/api/body.ts";
import { ApiErrors, callerError } from "../../control/api/errors.ts";
import { throwInScript, type BindingCall, type BindingHandler } from "../../workers/binding.ts";
import type { Instances } from "./instances.ts";
import { readRetention, RetentionSchema } from "./api/resource.ts";
import { shownError, shownRollback } from "./api/timeline.ts";
import { decode } from "./worker/codec.ts";
import { codeOf, workflowErrorCodes } from "./api/api-errors.ts";
import { WorkflowError, workflowErrors } from "./errors.ts";
import { workflowLimits } from "./workflow.ts";
import type { Workflows } from "./workflows.ts";

/**
 * Calls that a script makes through a workflow binding. Values are text of codec.ts, which only scripts
 * decode.
 */
const TextSchema = z.string().refine(isReadable, "Expected a value in the platform's encoding");
const InstancesSchema = z
  .array(
    z.strictObject({
      id: z.string().optional(),
      params: TextSchema,
      retention: z.union([z.number(), z.string().max(64), RetentionSchema]).optional(),
    }),
  )
  .max(10 * workflowLimits.batchMax); // a batch that is larger than allowed is refused elsewhere, with a clearer message
const ControlSchema = z.strictObject({
  action: z.enum(["pause", "resume", "terminate", "restart"]),
  from: z
    .strictObject({
      name: z.string().min(1).max(256),
      count: z.int().min(1).default(1),
      type: z.enum(["do", "sleep", "waitForEvent"]).default("do"),
    })
    .optional(),
});
const EventSchema = z.strictObject({ type: z.string(), payload: TextSchema });
const IdsSchema = z.array(z.string()).min(1).max(workflowLimits.batchMax);
const bodyBytesMax = 8 * 1024 * 1024;
/** A script that exceeds its creation rate is delayed by at most this before it gets an error. */
const createWaitMsMax = 10_000;

export const workflowBinding =
  (workflows: Workflows, instances: Instances): BindingHandler<"workflow"> =>
  async (call) => {
    try {
      await answer(workflows, instances, call);
    } catch (error) {
      const shown = callerError(error, workflowErrorCodes);
      if (shown === undefined) throw error;
      const first = shown instanceof ApiErrors ? shown.errors[0]! : shown;
      const message = error instanceof WorkflowError ? error.scriptMessage : first.message;
      call.request.resume();
      throwInScript(call.response, { message, name: "WorkflowError", code: first.code });
    }
  };

async function answer(
  workflows: Workflows,
  instances: Instances,
  { caller, binding, url, request, response, span }: BindingCall<"workflow">,
): Promise<void> {
  const workflow = workflows.get(caller.accountId, binding.workflow_name);
  const [, kind, encodedId = "", action] = url.pathname.split("/");
  const id = decodeURIComponent(encodedId);
  switch (
    `${request.method} ${kind}${encodedId === "" ? "" : "/id"}${action === undefined ? "" : `/${action}`}`
  ) {
    case "POST instances":
      sendJson(
        response,
        await create(instances, workflow, await readJson(request, InstancesSchema, bodyBytesMax), span),
      );
      return;
    case "GET instances/id": {
      const row = await instances.get(workflow, id);
      sendJson(response, {
        status: row.status,
        output: row.output,
        error: shownError(row.error),
        rollback: shownRollback(row.error),
      });
      return;
    }
    case "DELETE instances/id":
      await instances.delete(workflow, id);
      response.writeHead(204).end();
      return;
    case "POST instances/id/status": {
      const { action: control, from } = await readJson(request, ControlSchema, bodyBytesMax);
      if (control === "restart")
        await instances.restart(
          workflow,
          id,
          from && { name: from.name, count: from.count, kind: from.type },
        );
      else await instances.control(workflow, id, control);
      sendJson(response, {});
      return;
    }
    case "POST instances/id/events": {
      const { type, payload } = await readJson(request, EventSchema, bodyBytesMax);
      await instances.sendEvent(workflow, id, type, payload);
      sendJson(response, {});
      return;
    }
    case "POST delete":
      await deleteAll(instances, workflow, await readJson(request, IdsSchema, bodyBytesMax));
      sendJson(response, {});
      return;
    default:
      throw workflowErrors.invalid(`Unknown request ${request.method} ${url.pathname}`);
  }
}

type BoundWorkflow = ReturnType<Workflows["get"]>;

/** Creates instances. Resolves with the id or the error of each. */
async function create(
  instances: Instances,
  workflow: BoundWorkflow,
  inputs: z.infer<typeof InstancesSchema>,
  span: Span | undefined,
): Promise<object[]> {
  const made = await instances.createBatch(
    workflow,
    inputs.map(({ id, params, retention }) => ({
      id,
      params,
      retention: readRetention(retention, "retention"),
    })),
    "binding",
    { waitMsMax: createWaitMsMax, span },
  );
  const exists = workflowErrors.alreadyExists();
  const duplicate = workflowErrors.duplicateInBatch();
  return made.map((each) => {
    if ("row" in each) return { id: each.row.id };
    const error = each.skipped === "exists" ? exists : duplicate;
    return {
      index: each.index,
      id: each.id,
      code: codeOf(error),
      message: inputs.length === 1 ? error.scriptMessage : error.message,
    };
  });
}

/** Deletes instances, or none if one of them does not exist. */
async function deleteAll(
  instances: Instances,
  workflow: BoundWorkflow,
  ids: readonly string[],
): Promise<void> {
  await Promise.all(ids.map(async (each) => instances.get(workflow, each)));
  await Promise.all(ids.map(async (each) => instances.delete(workflow, each)));
}

const sendJson = (response: ServerResponse, body: unknown): void => {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
};

/** The text comes from the script's isolate, where the script's code may have written it. */
function isReadable(text: string): boolean {
  try {
    decode(text);
    return /^[jt]/.test(text);
  } catch {
    return false;
  }
}
