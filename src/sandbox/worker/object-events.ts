/*
 * The events that the system worker is about to send to hosts of objects, which are in the same isolate. A host gets the
 * token only: scripts of the process have its stub, too, so whatever else arrives there may come from them.
 */
import type { ObjectEvent } from "../protocol.ts";

const expected = new Map<string, ObjectEvent>();

/** Sends an event, whose token serves once. */
export async function sendEvent<T>(event: ObjectEvent, send: (run: string) => Promise<T>): Promise<T> {
  const { run } = event;
  expected.set(run, event);
  try {
    return await send(run);
  } finally {
    if (expected.get(run) === event) expected.delete(run);
  }
}

/** The event of a token for the object with this id. Throws if the system worker did not send it. */
export function takeEvent(run: unknown, id: string): ObjectEvent {
  const event = typeof run === "string" ? expected.get(run) : undefined;
  if (event === undefined || event.object.id !== id)
    throw new TypeError("The platform has not sent this event.");
  expected.delete(event.run);
  return event;
}
