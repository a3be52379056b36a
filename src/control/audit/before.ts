import { PreparedJson } from "../api/envelope.ts";
import type { Call, Operation } from "../api/operation.ts";
import { isAudited } from "./describe.ts";
import { beforeJson } from "./entry.ts";

type AnyCall = Call<unknown, unknown, object>;
/** Reads the resource that a call is about to change, as JSON for its entry. Null if there is none. */
export type ReadBefore = (operation: Operation, call: AnyCall) => Promise<string | null>;

/**
 * The state of a resource before its change is the result of the GET operation of the same path. It is read just before
 * the change's transaction, so a concurrent change may come in between.
 */
export function beforeReader(bound: readonly { operation: Operation; services: object }[]): ReadBefore {
  const readers = new Map(
    bound
      .filter(({ operation }) => operation.method === "GET" && operation.answer === "result")
      .map((each) => [each.operation.path, each]),
  );
  return async (operation, call) => {
    const reader = readers.get(operation.path);
    if (reader === undefined || operation.method === "POST") return null;
    if (!isAudited(operation, call) || operation.hidesBefore === true) return null;
    const query = reader.operation.query?.safeParse({});
    if (query?.success === false) return null;
    const reading = { ...call, services: reader.services, query: query?.data, body: undefined, messages: [] };
    try {
      const resource: unknown = await reader.operation.handle(
        reading as unknown as Call<never, never, never>,
      );
      return beforeJson(resource instanceof PreparedJson ? resource.value : resource, reader.operation);
    } catch {
      return null; // the change itself will report the error
    }
  };
}
