import { RefusedError } from "./core.ts";
import type { Control, Operations, RestartFrom } from "./operations.ts";
import { workflowErrors } from "./workflow.ts";
import { FencedError, StorageFaultError } from "./writer.ts";

/** What is done to one instance, by the node that has it. As JSON it goes from one node to another. */
export type Command = { rid: number } & (
  | { do: Control }
  | { do: "restart"; from?: RestartFrom }
  | { do: "event"; type: string; payload: string }
  | { do: "remove" }
);

/** Resolves when it is durable; throws what the caller is to be told. */
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
    throw toApiError(error);
  }
}

export function toApiError(error: unknown): unknown {
  if (error instanceof StorageFaultError) return workflowErrors.storageFault();
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
