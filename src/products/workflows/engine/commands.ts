import { isDiskFull } from "../../../platform/storage/faults.ts";
import { RefusedError } from "./engine-state.ts";
import type { InstanceControl, Operations, RestartFrom } from "./operations.ts";
import { workflowErrors } from "../errors.ts";
import { FencedError, StorageFaultError } from "../store/writer.ts";

/**
 * A command for one instance, executed by the node that owns it. Nodes send commands to each other as JSON.
 */
export type Command = { rid: number } & (
  | { do: InstanceControl }
  | { do: "restart"; from?: RestartFrom }
  | { do: "event"; type: string; payload: string }
  | { do: "remove" }
);

/** Resolves when the command's effect is durable. Throws the error for the caller. */
export async function perform(operations: Operations, command: Command): Promise<void> {
  try {
    switch (command.do) {
      case "event":
        await operations.sendEvent(command.rid, command.type, command.payload);
        return;
      case "restart":
        await operations.restart(command.rid, command.from);
        return;
      case "remove":
        await operations.remove(command.rid);
        return;
      default:
        await operations.control(command.rid, command.do);
    }
  } catch (error) {
    throw asWorkflowError(error);
  }
}

/** Converts an error of the engine to a WorkflowError for the caller. Returns other errors unchanged. */
export function asWorkflowError(error: unknown): unknown {
  if (error instanceof StorageFaultError)
    return isDiskFull(error) ? workflowErrors.diskFull() : workflowErrors.storageFault();
  if (error instanceof FencedError) return workflowErrors.moved();
  if (!(error instanceof RefusedError)) return error;
  switch (error.reason) {
    case "notFound":
      return workflowErrors.instanceNotFound();
    case "cannotRestart":
      return workflowErrors.cannotRestart(error.message);
    default:
      return workflowErrors[error.reason]();
  }
}
