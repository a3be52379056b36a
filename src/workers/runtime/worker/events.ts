import { queueEvent } from "./batch.ts";
import { noteException } from "../../tail/worker/console.ts";
import type { Handlers } from "./script.ts";

interface Event {
  event: object;
  outcome?(): unknown;
  /** Converts a handler's exception into an answer; without it the whole run fails. */
  failure?(error: unknown): unknown;
}

/** Runs a handler for an event other than a request. The answer is JSON that depends on the event. */
export async function handleEvent(
  event: string,
  handlers: Handlers,
  request: Request,
  env: object,
  ctx: object,
): Promise<Response> {
  const handler = handlers[event];
  if (handler === undefined) throw new Error(`Handler does not export a ${event}() function.`);
  const makers: Record<string, (body: never) => Event> = {
    scheduled: scheduledEvent,
    queue: queueEvent,
    tail: (body: object) => ({ event: body }),
  };
  const maker = makers[event];
  if (maker === undefined) throw new Error(`Unknown event ${event}`);
  const made = maker((await request.json()) as never);
  try {
    await handler.call(handlers, made.event, env, ctx);
  } catch (error) {
    if (made.failure === undefined) throw error;
    noteException(error);
    return Response.json(made.failure(error));
  }
  return Response.json(made.outcome?.() ?? {});
}

function scheduledEvent({ cron, scheduledTime }: { cron: string; scheduledTime: number }): Event {
  let isFinal = false;
  const noRetry = (): void => {
    isFinal = true;
  };
  return {
    event: { type: "scheduled", cron, scheduledTime, noRetry },
    outcome: () => ({ noRetry: isFinal }),
  };
}
