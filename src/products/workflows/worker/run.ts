import { decode, encode, encodedBytes } from "./codec.ts";
import { outputTooLarge, type Ending, type StartMessage } from "./messages.ts";
import { Invocation, type InvocationHost, type EnginePort } from "./invocation.ts";
import { Step, toMessage } from "./step.ts";

export interface RunnableWorkflow {
  run(event: object, step: Step): unknown;
}

/** Runs a workflow from its journal on, until it ends or only waits are left. */
export async function runInvocation(
  invocation: Invocation,
  start: StartMessage,
  workflow: RunnableWorkflow,
): Promise<Ending> {
  const payload = decode(start.payload);
  const event = {
    payload,
    params: payload,
    timestamp: new Date(start.timestamp),
    instanceId: start.instanceId,
    workflowName: start.workflowName,
    ...(start.schedule === undefined ? {} : { schedule: start.schedule }),
  };
  const step = new Step(invocation);
  const own = (async (): Promise<Ending> => {
    try {
      const value = encode(await workflow.run(event, step), "The result of the workflow");
      if (
        value.length > invocation.limits.valueBytesMax &&
        encodedBytes(value) > invocation.limits.valueBytesMax
      )
        return { end: "throw", error: outputTooLarge, unasked: invocation.unasked() };
      return { end: "return", value, unasked: invocation.unasked() };
    } catch (error) {
      const rollback = await step.rollBack(error);
      return { end: "throw", error: toMessage(error), rollback, unasked: invocation.unasked() };
    }
  })();
  const ending = await Promise.race([own, invocation.ended]);
  invocation.close(ending);
  return ending;
}

export { Invocation };
export type { InvocationHost, EnginePort };
