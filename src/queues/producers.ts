import type { Scripts } from "../scripts/scripts.ts";
import type { Versions } from "../scripts/versions.ts";

/** The scripts of an account that send to queues, by the queue's name: those that run with a binding to it. */
export async function producersByQueue(
  { scripts, versions }: { scripts: Scripts; versions: Versions },
  accountId: string,
): Promise<Map<string, string[]>> {
  const producers = new Map<string, string[]>();
  for (const { script, version } of await versions.currentOf(scripts.list({ accountId }))) {
    const names = version.content.bindings.flatMap((each) =>
      each.type === "queue" ? [each.queue_name] : [],
    );
    for (const name of new Set(names)) producers.set(name, [...(producers.get(name) ?? []), script.name]);
  }
  return producers;
}
