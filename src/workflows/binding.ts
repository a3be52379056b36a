import type { ServerResponse } from "node:http";
import { z } from "zod";
import { readJson } from "../api/body.ts";
import { ApiError, ApiErrors } from "../api/errors.ts";
import { throwInScript, type BindingCall, type BindingHandler } from "../runtime/binding.ts";
import type { Instances } from "./instances.ts";
import { readRetention, RetentionSchema } from "./resource.ts";
import { shownError, shownRollback } from "./timeline.ts";
import { decode } from "./worker/codec.ts";
import { WorkflowError, workflowErrors, workflowLimits } from "./workflow.ts";
import type { Workflows } from "./workflows.ts";

/** What a script does through a binding to a workflow. Its values are text of codec.ts, which only scripts read. */
const TextSchema = z.string().refine(isReadable, "Expected a value in the platform's own form");
const InstancesSchema = z.array(
  z.strictObject({
    id: z.string().optional(),
    params: TextSchema,
    retention: z.union([z.int().min(0), z.string().max(64), RetentionSchema]).optional(),
  }),
);
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
const bodyBytesMax = 8 * 1024 * 1024;

export const workflowBinding =
  (workflows: Workflows, instances: Instances): BindingHandler<"workflow"> =>
  async (call) => {
    try {
      await answer(workflows, instances, call);
    } catch (error) {
      const first = error instanceof ApiErrors ? error.errors[0]! : error;
      if (!(first instanceof ApiError)) throw error;
      const message = first instanceof WorkflowError ? first.scriptMessage : first.message;
      call.request.resume();
      throwInScript(call.response, { message, name: "WorkflowError", code: first.code });
    }
  };

async function answer(
  workflows: Workflows,
  instances: Instances,
  { caller, binding, url, request, response }: BindingCall<"workflow">,
): Promise<void> {
  const workflow = workflows.get(caller.accountId, binding.workflow_name);
  const [, kind, encodedId = "", action] = url.pathname.split("/");
  const id = decodeURIComponent(encodedId);
  switch (
    `${request.method} ${kind}${encodedId === "" ? "" : "/id"}${action === undefined ? "" : `/${action}`}`
  ) {
    case "POST instances": {
      const inputs = await readJson(request, InstancesSchema, bodyBytesMax);
      const made = await instances.createBatch(
        workflow,
        inputs.map(({ id: own, params, retention }) => ({
          id: own,
          params,
          retention: readRetention(retention, "retention"),
        })),
        "binding",
      );
      const exists = workflowErrors.alreadyExists();
      const duplicate = workflowErrors.duplicateInBatch();
      sendJson(
        response,
        made.map((each) => {
          if ("row" in each) return { id: each.row.id };
          const { code, message, scriptMessage } = each.skipped === "exists" ? exists : duplicate;
          return {
            index: each.index,
            id: each.id,
            code,
            message: inputs.length === 1 ? scriptMessage : message,
          };
        }),
      );
      return;
    }
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
    case "POST delete": {
      const ids = await readJson(
        request,
        z.array(z.string()).min(1).max(workflowLimits.batchMax),
        bodyBytesMax,
      );
      await Promise.all(ids.map(async (each) => instances.get(workflow, each)));
      await Promise.all(ids.map(async (each) => instances.delete(workflow, each)));
      sendJson(response, {});
      return;
    }
    default:
      throw workflowErrors.invalid(`Unknown request ${request.method} ${url.pathname}`);
  }
}

const sendJson = (response: ServerResponse, body: unknown): void => {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
};

/** It comes from the script's isolate, beside its own code. */
function isReadable(text: string): boolean {
  try {
    decode(text);
    return /^[jt]/.test(text);
  } catch {
    return false;
  }
}
