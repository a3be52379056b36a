import { z } from "zod";
import type { TailEvent } from "./event.ts";

const outcomes = z.enum([
  "ok",
  "canceled",
  "exception",
  "exceededCpu",
  "exceededMemory",
  "responseStreamDisconnected",
  "scriptNotFound",
  "unknown",
]);

/** Values of one filter; each run is compared with them. */
const valuesMax = 100;

/** One criterion in each object, as in the public API. */
const FilterSchema = z.strictObject({
  sampling_rate: z.number().gt(0).max(1).optional(),
  outcome: z.array(outcomes).max(outcomes.options.length).optional(),
  method: z.array(z.string()).max(valuesMax).optional(),
  header: z.strictObject({ key: z.string().min(1), query: z.string().optional() }).optional(),
  client_ip: z.array(z.string()).max(valuesMax).optional(),
  query: z.string().optional(),
  scriptVersion: z.string().optional(),
});
export const FiltersSchema = z.array(FilterSchema).max(32);
export type Filter = z.output<typeof FilterSchema>;

/** Whether a run may match the filters. Checked before the run, so that other runs cost nothing. */
export function wantsRun(
  filters: readonly Filter[],
  run: Pick<TailEvent, "event" | "scriptVersion">,
): boolean {
  return filters.every(
    (filter) =>
      (filter.sampling_rate === undefined || Math.random() < filter.sampling_rate) &&
      (filter.scriptVersion === undefined || filter.scriptVersion === run.scriptVersion.id) &&
      wantsRequest(filter, run.event),
  );
}

function wantsRequest({ method, header, client_ip }: Filter, event: TailEvent["event"]): boolean {
  if (method === undefined && header === undefined && client_ip === undefined) return true;
  // Events other than requests have none of these.
  if (event === null || !("request" in event)) return false;
  const { request } = event;
  const value = header && request.headers[header.key.toLowerCase()];
  return (
    (method === undefined || method.some((each) => each.toUpperCase() === request.method)) &&
    (header === undefined || (value !== undefined && value.includes(header.query ?? ""))) &&
    (client_ip === undefined || client_ip.includes(request.headers["cf-connecting-ip"] ?? ""))
  );
}

/** Checks the remaining criteria after the run. */
export const wantsEvent = (filters: readonly Filter[], event: TailEvent): boolean =>
  filters.every(
    ({ outcome, query }) =>
      (outcome === undefined || outcome.includes(event.outcome)) &&
      (query === undefined ||
        event.logs.some(({ message }) =>
          message.some((part) => (typeof part === "string" ? part : JSON.stringify(part)).includes(query)),
        )),
  );
