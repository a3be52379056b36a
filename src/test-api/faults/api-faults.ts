import { z } from "zod";
import type { SeenCall } from "../../control/api/server/hooks.ts";
import { canonicalPath } from "../../control/api/server/paths.ts";
import { contains } from "../journal.ts";
import { milliseconds, range, selection, type FaultRules } from "./fault-rules.ts";

/** A fault of the management API. */
export const ApiFaultSchema = z.strictObject({
  on: z
    .strictObject({
      operation: z.union([z.string(), z.array(z.string()).max(100)]).optional(),
      method: z
        .string()
        .regex(/^(?:get|post|put|patch|delete|head|options)$/i, "Expected a method such as GET")
        .optional(),
      /** A whole path, with or without the base. */
      path: z
        .string()
        .max(1000)
        .regex(/^\/[^?#*\s]*$/, "Expected a path such as /zones, without a query")
        .optional(),
      /** The token itself. */
      token: z.string().max(8192).optional(),
      /** The id of a zone that the path names. */
      zone: z.string().max(300).optional(),
      body: z.record(z.string(), z.unknown()).optional(),
    })
    .default({}),
  ...selection,
  then: z
    .strictObject({
      status: z.int().min(400).max(599).optional(),
      code: z.int().min(1).max(999_999).optional(),
      message: z.string().max(1000).optional(),
      retryAfter: z.int().min(0).max(86_400).optional(),
      delayMs: z.union([milliseconds, range(milliseconds)]).optional(),
      /** Not "refuse": a call is known only after its connection was accepted. */
      connection: z.enum(["reset", "hang", "cut-headers", "cut-body"]).optional(),
      when: z.enum(["before", "after"]).optional(),
    })
    .refine(
      ({ status, connection, delayMs }) => (status ?? connection ?? delayMs) !== undefined,
      "Expected a status, a connection or delayMs",
    )
    .refine(
      ({ status, code, message, retryAfter }) =>
        status !== undefined || (code ?? message ?? retryAfter) === undefined,
      "Expected a status with code, message and retryAfter",
    ),
});
export type ApiFault = z.output<typeof ApiFaultSchema>;

/** A fault that applies to a call. */
export interface Met {
  id: string;
  then: ApiFault["then"];
  delayMs: number;
}

/** Whether the body decides which fault a call meets. */
export const dependsOnBody = (faults: FaultRules<ApiFault>, call: SeenCall): boolean =>
  faults.list.some(
    ({ fault: { on } }) => on.body !== undefined && matchesCall({ ...on, body: undefined }, call),
  );

/** Selects the fault of a call. Without a body, none with conditions on it. */
export function applyApiFault(faults: FaultRules<ApiFault>, call: SeenCall): Met | undefined {
  const applied = faults.apply(({ on }) => matchesCall(on, call));
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

function matchesCall(on: ApiFault["on"], { operation, incoming, url, params, body }: SeenCall): boolean {
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
