import type { Logger } from "pino";
import { connectionLost, overloadedCells } from "../../../sandbox/objects/faults.ts";

interface Parts {
  /** The lease of this node. */
  lease: { readonly current: number | undefined; owns(namespace: string): boolean };
  log: { whenShipped(namespaces: ReadonlySet<string>): Promise<void> };
  logger: Pick<Logger, "warn">;
}

/**
 * See ObjectFilesHere. The work is refused only before it begins: later the log may have a part of it, so the callers get
 * another error, after which `OwnedObjects` does not repeat it.
 */
export async function shippedWork<T>(
  namespace: string,
  work: () => Promise<T>,
  { lease, log, logger }: Parts,
): Promise<T> {
  const { current } = lease;
  if (current === undefined || !lease.owns(namespace)) throw overloadedCells();
  const result = await work();
  try {
    await log.whenShipped(new Set([namespace]));
  } catch (error) {
    logger.warn({ err: error }, "a change of an object could not be shipped");
    throw connectionLost();
  }
  if (lease.current !== current || !lease.owns(namespace)) throw connectionLost();
  return result;
}
