import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { callerOf, type Answered, type Call } from "../helpers/writes.ts";
import type { Facts } from "./facts.ts";
import { callMsMax, type ChaosNode, type Platform } from "./platform.ts";
import type { Known, Things } from "./things.ts";

export interface Verdict {
  /** Acknowledged writes that a node does not show. */
  lost: string[];
  wrong: string[];
  /** Answers that differ between the two nodes. */
  different: string[];
  /** Uncaught exceptions, and ends that failed. */
  process: string[];
  checked: number;
}

const settledMsMax = 30_000;
const atOnce = 8;

/** Compares what both nodes say with each other, and with what was acknowledged. */
export async function verify(platform: Platform, things: Things, facts: readonly Facts[]): Promise<Verdict> {
  const verdict: Verdict = { lost: [], wrong: [], different: [], process: [], checked: 0 };
  const calls = new Map(platform.nodes.map((node) => [node, callerOf(node.ready.api, callMsMax)]));
  await each(things.all, (known) => checkThing(known, calls, verdict));
  for (const [node, call] of calls)
    await each(
      facts.flatMap(({ paths }) => paths),
      async ({ kind, path }) => {
        verdict.checked++;
        const answer = await settled(
          () => call("GET", path),
          ({ status }) => status === 200,
        );
        if (answer.status !== 200)
          verdict.lost.push(`${kind} ${path} at ${node.name}: ${answer.status} ${answer.text.slice(0, 200)}`);
      },
    );
  const [, call] = [...calls][1]!;
  for (const fact of facts) {
    const { lost, wrong } = await fact.messages(call);
    verdict.lost.push(...lost.map((body) => `queue: ${body}`));
    verdict.wrong.push(...wrong.map((body) => `queue: ${body}`));
    verdict.lost.push(...(await fact.incomplete(call)).map((path) => `does not complete: ${path}`));
    verdict.wrong.push(...(await fact.halves(call)).map((batch) => `not whole: ${batch}`));
    verdict.checked += fact.instanceCount + fact.unknownBatches.length;
  }
  await compare(platform.nodes[0].ready.account_id, [...calls], verdict);
  for (const node of platform.nodes) {
    const uncaught = await node.uncaught();
    if (uncaught > 0) verdict.process.push(`${node.name}: ${uncaught} uncaught exceptions`);
  }
  return verdict;
}

/** Every acknowledged or open thing is complete at both nodes, and the same at both. */
async function checkThing(
  { kind, thing, history }: Known,
  calls: ReadonlyMap<ChaosNode, Call>,
  verdict: Verdict,
): Promise<void> {
  for (const channel of thing.channels) {
    const texts = new Set<string>();
    for (const [node, call] of calls) {
      verdict.checked++;
      const newest = history.acknowledged;
      const seen = await settled(
        () => channel.read(node, call).catch(() => undefined),
        (each) => each !== undefined && history.judge(each, newest) === "right",
      );
      const judged = seen === undefined ? "stale" : history.judge(seen, newest);
      const what = `${kind.name} ${thing.name}, ${channel.name} of ${node.name}: ${seen?.text ?? "no answer"}`;
      if (judged === "stale") verdict.lost.push(`${what}; acknowledged: v${newest}`);
      if (judged === "wrong") verdict.wrong.push(`${what}; acknowledged: v${newest}`);
      texts.add(seen?.text ?? "no answer");
    }
    if (texts.size > 1) verdict.different.push(`${kind.name} ${thing.name}: ${[...texts].join(" / ")}`);
  }
}

/** Lists of everything, which both nodes answer alike, and of which each entry is whole. */
async function compare(
  account: string,
  calls: readonly (readonly [ChaosNode, Call])[],
  verdict: Verdict,
): Promise<void> {
  const base = `/accounts/${account}`;
  const [, first] = calls[0]!;
  const zones = (await pages(first, "/zones", 50)) as { id: string }[];
  const namespaces = (await pages(first, `${base}/storage/kv/namespaces`, 100)) as { id: string }[];
  const lists: [string, number | undefined][] = [
    ["/zones", 50],
    ["/accounts", 50],
    ["/user/tokens", 50],
    [`${base}/tokens`, 50],
    [`${base}/workers/scripts`, undefined],
    [`${base}/workers/dispatch/namespaces/chaos/scripts`, undefined],
    [`${base}/storage/kv/namespaces`, 100],
    [`${base}/queues`, 100],
    [`${base}/workflows`, 100],
    [`${base}/images/v1`, 100],
    [`${base}/images/v1/variants`, undefined],
    ...zones.flatMap(({ id }): [string, number | undefined][] => [
      [`/zones/${id}/dns_records`, 1000],
      [`/zones/${id}/settings`, undefined],
      [`/zones/${id}/dns_settings`, undefined],
      [`/zones/${id}/snippets`, undefined],
      [`/zones/${id}/rulesets`, undefined],
    ]),
    ...namespaces.map(({ id }): [string, undefined] => [
      `${base}/storage/kv/namespaces/${id}/keys`,
      undefined,
    ]),
  ];
  await each(lists, async ([path, perPage]) => {
    verdict.checked++;
    const answers = await settled(
      () => Promise.all(calls.map(([, call]) => pages(call, path, perPage).catch(String))),
      ([one, other]) => isDeepStrictEqual(one, other) && typeof one !== "string",
    );
    if (!isDeepStrictEqual(answers[0], answers[1]) || typeof answers[0] === "string")
      verdict.different.push(`${path}: ${differenceOf(answers[0], answers[1])}`);
  });
  await checkWhole(base, calls, verdict);
}

/** Every image and every value that is listed can be read, also those whose upload was not acknowledged. */
async function checkWhole(
  base: string,
  calls: readonly (readonly [ChaosNode, Call])[],
  verdict: Verdict,
): Promise<void> {
  const [, first] = calls[0]!;
  const paths: string[] = [];
  for (const { id, draft } of (await pages(first, `${base}/images/v1`, 100)) as {
    id: string;
    draft?: boolean;
  }[])
    if (draft !== true) paths.push(`${base}/images/v1/${id}/blob`);
  for (const { id } of (await pages(first, `${base}/storage/kv/namespaces`, 100)) as { id: string }[]) {
    const values = `${base}/storage/kv/namespaces/${id}`;
    const { result } = await first("GET", `${values}/keys?limit=1000`);
    for (const { name } of result as { name: string }[]) paths.push(`${values}/values/${name}`);
  }
  for (const { id } of (await pages(first, `${base}/workers/scripts`)) as { id: string }[])
    paths.push(`${base}/workers/scripts/${id}`);
  for (const [node, call] of calls)
    await each(paths, async (path) => {
      verdict.checked++;
      const { status, text } = await call("GET", path);
      if (status !== 200)
        verdict.wrong.push(`not whole at ${node.name}: ${path}: ${status} ${text.slice(0, 200)}`);
    });
}

async function pages(call: Call, path: string, perPage?: number): Promise<unknown[]> {
  const all: unknown[] = [];
  for (let page = 1; ; page++) {
    const answer = await call(
      "GET",
      perPage === undefined ? path : `${path}?page=${page}&per_page=${perPage}`,
    );
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text.slice(0, 200)}`);
    const found = entriesOf(answer);
    all.push(...found);
    if (perPage === undefined || found.length < perPage) return all;
  }
}

/** The entries of a list, or the one thing that was answered. */
function entriesOf({ result }: Answered): unknown[] {
  if (Array.isArray(result)) return result;
  const nested = Object.values(result as object).find(Array.isArray);
  return nested ?? [result];
}

function differenceOf(one: unknown, other: unknown): string {
  if (!Array.isArray(one) || !Array.isArray(other)) return `${String(one)} / ${String(other)}`;
  const at = one.findIndex((entry, i) => !isDeepStrictEqual(entry, other[i]));
  return `${one.length} and ${other.length} entries; ${JSON.stringify(one[at])} / ${JSON.stringify(other[at])}`;
}

async function settled<T>(read: () => Promise<T>, isRight: (value: T) => boolean): Promise<T> {
  for (const end = performance.now() + settledMsMax; ;) {
    const value = await read();
    if (isRight(value) || performance.now() > end) return value;
    await delay(250);
  }
}

async function each<T>(list: readonly T[], work: (entry: T) => Promise<void>): Promise<void> {
  const left = list.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const entry of left) await work(entry);
    }),
  );
}
