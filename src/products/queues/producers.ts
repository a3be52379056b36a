import type { Scripts } from "../../workers/scripts/scripts.ts";
import type { Versions } from "../../workers/scripts/versions/versions.ts";

/** The services that know which scripts produce messages. */
export interface Producing {
  scripts: Scripts;
  versions: Versions;
}

/** The scripts of an account that have a binding to a queue, by the queue's name. */
export async function producersByQueue(
  { scripts, versions }: Producing,
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
