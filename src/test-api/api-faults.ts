import { createHash } from "node:crypto";
import { z } from "zod";
import type { SeenCall } from "../control/api/server/hooks.ts";
import { canonicalPath } from "../control/api/server/paths.ts";
import { contains } from "./journal.ts";

const millisecondsMax = 600_000;
const milliseconds = z.int().min(0).max(millisecondsMax);

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
  calls: z.union([z.int().min(1), z.tuple([z.int().min(1), z.int().min(1)])]).optional(),
  times: z.int().min(1).optional(),
  probability: z.number().min(0).max(1).optional(),
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

interface Rule {
  id: string;
  /** Among the faults since the last clear: chances follow from it. */
  number: number;
  fault: ApiFault;
  /** Calls that fit. */
  fitting: number;
  hits: number;
}

/** A fault that a call meets. */
export interface Met {
  id: string;
  then: ApiFault["then"];
  delayMs: number;
}

/** The faults of the management API. The newest one that fits a call is its fault. */
export class ApiFaults {
  readonly #seed: string;
  #rules: Rule[] = [];
  #count = 0;
  #sinceClear = 0;

  constructor(seed: string) {
    this.#seed = seed;
  }

  get list(): { id: string; hits: number; fault: ApiFault }[] {
    return this.#rules.map(({ id, hits, fault }) => ({ id, hits, fault }));
  }

  /** Returns the id of the fault. */
  add(fault: ApiFault): string {
    const id = `fault-${++this.#count}`;
    this.#rules.unshift({ id, number: ++this.#sinceClear, fault, fitting: 0, hits: 0 });
    return id;
  }

  /** False if there is none with this id. */
  remove(id: string): boolean {
    const count = this.#rules.length;
    this.#rules = this.#rules.filter((rule) => rule.id !== id);
    return this.#rules.length < count;
  }

  clear(): void {
    this.#rules = [];
    this.#sinceClear = 0;
  }

  /** `isRead`: the body is known; only rules about bodies are then asked, the others before. */
  meet(call: SeenCall, isRead: boolean): Met | undefined {
    for (const rule of this.#rules) {
      const { fault } = rule;
      if ((fault.on.body !== undefined) !== isRead || !fits(fault.on, call)) continue;
      rule.fitting++;
      if (!this.#strikes(rule)) continue;
      rule.hits++;
      return { id: rule.id, then: fault.then, delayMs: this.#delayOf(rule) };
    }
    return undefined;
  }

  #strikes(rule: Rule): boolean {
    const { calls, times, probability } = rule.fault;
    const [from, to] = typeof calls === "number" ? [calls, calls] : (calls ?? [1, Infinity]);
    return (
      rule.fitting >= from &&
      rule.fitting <= to &&
      rule.hits < (times ?? Infinity) &&
      (probability === undefined || this.#chance(rule, "strikes") < probability)
    );
  }

  #delayOf(rule: Rule): number {
    const { delayMs = 0 } = rule.fault.then;
    if (typeof delayMs === "number") return delayMs;
    const [least, most] = delayMs;
    return Math.round(least + this.#chance(rule, "delays") * (most - least));
  }

  /** A number from 0 to 1 that follows from the seed and the number of the call. */
  #chance({ number, fitting }: Rule, what: string): number {
    const digest = createHash("sha256").update(`${this.#seed} ${number} ${what} ${fitting}`).digest();
    return digest.readUInt32BE() / 2 ** 32;
  }
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
