/*
 * Lateness of alarms of Durable Objects: many objects have alarms that are due within a span, and another account has
 * some at the same times. `node test/proofs/object-alarms.ts [OBJECTS [SPAN_S]]`, default 10,000 within 20 s. A storm
 * of as many that are due at once follows.
 */
import { pathToFileURL } from "node:url";
import { callsOf, startHosting, type Calls, type Hosting } from "../runtime/platform.ts";
import { ownerToken } from "../helpers/server.ts";

const code = `import { DurableObject } from "cloudflare:workers";
export class Clock extends DurableObject {
  set(at) { return this.ctx.storage.setAlarm(at); }
  alarm() {}
}
export default { async fetch(request, env) {
  const { from, to, first, spanMs, count } = await request.json();
  const set = async (i) => env.CLOCKS.getByName("clock " + i).set(Math.floor(first + (spanMs * i) / count));
  for (let i = from; i < to; i += 25) await Promise.all(Array.from({ length: Math.min(25, to - i) }, (_, j) => set(i + j)));
  return new Response("set");
} };`;
const upload = {
  code,
  bindings: [{ type: "durable_object_namespace", name: "CLOCKS", class_name: "Clock" }],
  metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Clock"] } },
};

export interface Lateness {
  alarms: number;
  p50: number;
  p99: number;
  max: number;
}
const perRequest = 100;

async function setAlarms(
  calls: Calls,
  given: { first: number; spanMs: number; count: number },
): Promise<void> {
  const parts = Array.from({ length: Math.ceil(given.count / perRequest) }, (_, i) => i * perRequest);
  const next = async (): Promise<void> => {
    for (let from = parts.shift(); from !== undefined; from = parts.shift()) {
      const body = JSON.stringify({ ...given, from, to: Math.min(given.count, from + perRequest) });
      const answer = await calls.ask("clocks", "/", { method: "POST", body });
      if (answer.body !== "set")
        throw new Error(`Expected "set" but received ${answer.status} ${answer.body}`);
    }
  };
  await Promise.all([next(), next()]);
}

const latenessOf = (all: readonly number[]): Lateness => {
  const sorted = all.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN);
  return { alarms: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
};

/** Sets the alarms of both accounts and waits for all. `leadMs` is the time in which they are set. */
export async function lateness(
  hosting: Hosting,
  other: Calls,
  { count, spanMs, leadMs }: { count: number; spanMs: number; leadMs: number },
): Promise<{ own: Lateness; other: Lateness }> {
  const { objectAlarms, objectNamespaces } = hosting.services;
  const late = { own: [] as number[], other: [] as number[] };
  const otherNamespace = objectNamespaces.list(other.account)[0]!.id;
  objectAlarms.onRun = (lateMs, namespace) =>
    late[namespace === otherNamespace ? "other" : "own"].push(lateMs);
  const first = Date.now() + leadMs;
  const few = Math.min(count, 100);
  await Promise.all([
    setAlarms(hosting, { first, spanMs, count }),
    setAlarms(other, { first, spanMs, count: few }),
  ]);
  if (Date.now() > first) throw new Error("Setting the alarms took longer than the time before the first");
  while (late.own.length < count || late.other.length < few)
    await new Promise((resolve) => setTimeout(resolve, 50));
  return { own: latenessOf(late.own), other: latenessOf(late.other) };
}

/** Starts a platform with two accounts that have the script. */
export async function startClocks(): Promise<{ hosting: Hosting; other: Calls }> {
  const hosting = await startHosting();
  const created = await hosting.call("POST", "/accounts", { name: "Other" });
  const other = await callsOf({ ...hosting.ready, account_id: created.body.result.id as string }, ownerToken);
  for (const calls of [hosting, other]) await calls.deploy("clocks", upload);
  return { hosting, other };
}

async function main([count = 10_000, spanS = 20]: readonly number[]): Promise<void> {
  const { hosting, other } = await startClocks();
  const leadMs = 5000 + count * 30;
  console.log("spread", await lateness(hosting, other, { count, spanMs: spanS * 1000, leadMs }));
  console.log("at once", await lateness(hosting, other, { count: Math.ceil(count / 10), spanMs: 1, leadMs }));
  await hosting.close(0);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  await main(process.argv.slice(2).map(Number));
