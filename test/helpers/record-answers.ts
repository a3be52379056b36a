import { appendFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import type { Operation } from "../../src/control/api/operation.ts";

/** One answer that a test was given, as `scripts/conformance.ts` reads it: a line of JSON each. */
export interface RecordedAnswer {
  operation: string;
  client: "SDK" | "wrangler" | "other";
  /** Absent where the answer is no envelope. */
  result?: unknown;
}

const folder = process.env["RECORD_ANSWERS"];
const samplesMax = 12;
const arrayElementsMax = 3;
const textMax = 200;
const seen = new Map<string, Set<string>>();

/** Writes answers that look new into the folder RECORD_ANSWERS; undefined when that is not set. */
export const recordAnswer =
  folder === undefined
    ? undefined
    : (operation: Operation, result: unknown, incoming: IncomingMessage): void => {
        const client = clientOf(incoming.headers["user-agent"] ?? "");
        const answer: RecordedAnswer = { operation: operation.id, client };
        if (operation.answer === "result") answer.result = shortened(result);
        if (operation.answer === "page") answer.result = shortened((result as { items: unknown[] }).items);
        const shapes = seen.get(operation.id) ?? new Set();
        seen.set(operation.id, shapes);
        const shape = `${client} ${shapeOf(answer.result)}`;
        if (shapes.has(shape) || shapes.size >= samplesMax) return;
        shapes.add(shape);
        appendFileSync(join(folder, `${process.pid}.ndjson`), `${JSON.stringify(answer)}\n`);
      };

function clientOf(userAgent: string): RecordedAnswer["client"] {
  if (userAgent.startsWith("Cloudflare/JS")) return "SDK";
  return userAgent.startsWith("wrangler/") ? "wrangler" : "other";
}

function shortened(value: unknown): unknown {
  // As the client reads it: without what JSON leaves out.
  return JSON.parse(JSON.stringify(value ?? null), (_, each: unknown) => {
    if (Array.isArray(each)) return each.slice(0, arrayElementsMax);
    return typeof each === "string" ? each.slice(0, textMax) : each;
  });
}

/** The fields and their types. */
function shapeOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(shapeOf).join()}]`;
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  const fields = Object.entries(value).map(([name, each]) => `${name}:${shapeOf(each)}`);
  return `{${fields.join()}}`;
}
