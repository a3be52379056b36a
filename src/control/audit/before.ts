import { PreparedJson } from "../api/envelope.ts";
import type { Call, Operation } from "../api/operation.ts";
import { isAudited } from "./describe.ts";
import { beforeJson } from "./entry.ts";

type AnyCall = Call<unknown, unknown, object>;
/** Reads the resource that a call is about to change, as JSON for its entry. Null if there is nothing to read. */
export type ReadBefore = (operation: Operation, call: AnyCall) => Promise<string | null> | null;

/**
 * The state of a resource before its change is the result of the GET operation of the same path. It is read just before
 * the change's transaction, so a concurrent change may come in between. Operations with `before` give it themselves.
 */
export function beforeReader(bound: readonly { operation: Operation; services: object }[]): ReadBefore {
  const readers = new Map(
    bound
      .filter(({ operation }) => operation.method === "GET" && operation.answer === "result")
      .map((each) => [each.operation.path, each]),
  );
  return (operation, call) => {
    const reader = readers.get(operation.path);
    if (reader === undefined || operation.method === "POST" || operation.before !== undefined) return null;
    if (!isAudited(operation, call) || operation.hidesBefore === true) return null;
    return read(reader, call);
  };
}

async function read(
  { operation, services }: { operation: Operation; services: object },
  call: AnyCall,
): Promise<string | null> {
  const query = operation.query?.safeParse({});
  if (query?.success === false) return null;
  const reading = { ...call, services, query: query?.data, body: undefined, messages: [] };
  try {
    const resource: unknown = await operation.handle(reading as unknown as Call<never, never, never>);
    return beforeJson(resource instanceof PreparedJson ? resource.value : resource, operation.result);
  } catch {
    return null; // the change itself will report the error
  }
}
