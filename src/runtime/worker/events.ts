import type { Handlers } from "./script.ts";

/** Runs a handler for something other than a request. The answer is JSON, and depends on the event. */
export async function handleEvent(
  event: string,
  handlers: Handlers,
  request: Request,
  env: object,
  ctx: object,
): Promise<Response> {
  const handler = handlers[event];
  if (handler === undefined) throw new Error(`Handler does not export a ${event}() function.`);
  const makers: Record<string, (body: never) => { event: object; outcome?: () => unknown }> = {
    scheduled: scheduledEvent,
    tail: (body: object) => ({ event: body }),
  };
  const maker = makers[event];
  if (maker === undefined) throw new Error(`Unknown event ${event}`);
  const made = maker((await request.json()) as never);
  await handler(made.event, env, ctx);
  return Response.json(made.outcome?.() ?? {});
}

function scheduledEvent({ cron, scheduledTime }: { cron: string; scheduledTime: number }): {
  event: object;
  outcome: () => unknown;
} {
  let isFinal = false;
  const noRetry = (): void => void (isFinal = true);
  return {
    event: { type: "scheduled", cron, scheduledTime, noRetry },
    outcome: () => ({ noRetry: isFinal }),
  };
}
