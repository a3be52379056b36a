import { decode, encode } from "./codec.ts";
import type { Ending, StartMessage } from "./messages.ts";
import { Segment, type Host, type Lane } from "./segment.ts";
import { Step, toMessage } from "./step.ts";

export interface Workflow {
  run(event: object, step: Step): unknown;
}

/** Runs a workflow from its journal on, until it ends or has only waiting left to do. */
export async function runSegment(segment: Segment, start: StartMessage, workflow: Workflow): Promise<Ending> {
  const payload = decode(start.payload);
  const event = {
    payload,
    params: payload,
    timestamp: new Date(start.timestamp),
    instanceId: start.instanceId,
    workflowName: start.workflowName,
    ...(start.schedule === undefined ? {} : { schedule: start.schedule }),
  };
  const step = new Step(segment);
  const own = (async (): Promise<Ending> => {
    try {
      const value = encode(await workflow.run(event, step), "The result of the workflow");
      return { end: "return", value, unasked: segment.unasked() };
    } catch (error) {
      const rollback = await step.rollBack(error);
      return { end: "throw", error: toMessage(error), rollback, unasked: segment.unasked() };
    }
  })();
  const ending = await Promise.race([own, segment.ended]);
  segment.close(ending);
  return ending;
}

export { Segment };
export type { Host, Lane };
