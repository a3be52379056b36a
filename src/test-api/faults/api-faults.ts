import { z } from "zod";
import type { SeenCall } from "../../control/api/server/hooks.ts";
import { canonicalPath } from "../../control/api/server/paths.ts";
import { contains } from "../journal.ts";
import { milliseconds, selection, type FaultRules } from "./fault-rules.ts";

/** A fault of the management API. */
export const ApiFaultSchema = z.strictObject({
  on: z.strictObject({
    operation: z.union([z.string(), z.array(z.string()).max(100)]).optional(),
    method: z.string().max(16).optional(),
    path: z.string().max(1000).optional(),
    /** The token itself. */
    token: z.string().max(8192).optional(),
    /** The id of a zone that the path names. */
    zone: z.string().max(300).optional(),
    body: z.record(z.string(), z.unknown()).optional(),
  }),
  ...selection,
  then: z.strictObject({
    status: z.int().min(400).max(599).optional(),
    code: z.int().min(1).max(999_999).optional(),
    message: z.string().max(1000).optional(),
    retryAfter: z.int().min(0).max(86_400).optional(),
    delayMs: z.union([milliseconds, z.tuple([milliseconds, milliseconds])]).optional(),
    connection: z.enum(["reset", "hang", "cut-headers", "cut-body"]).optional(),
    when: z.enum(["before", "after"]).optional(),
  }),
});
export type ApiFault = z.output<typeof ApiFaultSchema>;

/** A fault that applies to a call. */
export interface Met {
  id: string;
  then: ApiFault["then"];
  delayMs: number;
}

/** Selects the fault of a call. With `isRead` (the body was read), only among faults with conditions on the body. */
export function applyApiFault(
  faults: FaultRules<ApiFault>,
  call: SeenCall,
  isRead: boolean,
): Met | undefined {
  const applied = faults.apply(({ on }) => (on.body !== undefined) === isRead && fits(on, call));
  if (applied === undefined) return undefined;
  const { then } = applied.fault;
  const { delayMs = 0 } = then;
  const [least, most] = typeof delayMs === "number" ? [delayMs, delayMs] : delayMs;
  return {
    id: applied.id,
    then,
    delayMs: least === most ? least : Math.round(least + applied.chance("delays") * (most - least)),
  };
}

function fits(on: ApiFault["on"], { operation, incoming, url, params, body }: SeenCall): boolean {
  const operations = typeof on.operation === "string" ? [on.operation] : on.operation;
  return (
    (operations === undefined || (operation !== undefined && operations.includes(operation.id))) &&
    (on.method === undefined || on.method.toUpperCase() === incoming.method) &&
    (on.path === undefined || canonicalPath(new URL(url).pathname) === canonicalPath(on.path)) &&
    (on.token === undefined || incoming.headers.authorization === `Bearer ${on.token}`) &&
    (on.zone === undefined || params["zone_id"] === on.zone) &&
    (on.body === undefined || contains(body, on.body))
  );
}
