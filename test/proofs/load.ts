import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { benchToken, startSelvedge } from "../../bench/lib/child.ts";
import type { Ready } from "../../src/ready.ts";
import { cellPids, residentMebibytes } from "../runtime/cell-processes.ts";
import { callsOf, type Calls } from "../runtime/platform.ts";
import { cases, type Stage } from "./load-cases.ts";
import { Tally } from "./load-clients.ts";
import { Neighbours } from "./load-innocents.ts";

/**
 * One customer's load is his own: a greedy account does its worst in each of the ways of load-cases.ts, while scripts, snippets
 * and sites of others are asked 200 times a second. No innocent request may fail, and the memory of cells stays inside what is
 * stated. `node test/proofs/load.ts` prints the whole table in about five minutes, and fails where one of that is not so;
 * `--seconds 30 --case sleeping` does some for longer.
 */
export interface LoadOptions {
  seconds: number;
  perSecond: number;
  /** Of the greedy requests. */
  share: number;
  /** Cases whose names contain it. */
  only?: string;
}

export interface LoadRow {
  name: string;
  asked: number;
  failures: string[];
  ms: { p50: number; p99: number; max: number };
  greedy: string;
  /** Of all cells together. */
  cellsMebibytesMax: number;
  /** Of one of them. */
  cellMebibytesMax: number;
  cellsMax: number;
  /** Most that all had together beyond what is stated for so many of them; negative where it never was. */
  overBudgetMebibytes: number;
  frontMebibytesMax: number;
}

const accomplicesCount = 12;
const cellMebibytes = 256;
/** docs/scripts.md: of accounts' cells and of customers' one that serves and one that drains; beyond these, spare and dedicated ones. */
const budgetOf = (count: number): number => {
  const [serving, alone] = [Math.min(count, 4), Math.max(0, count - 4)];
  return serving * cellMebibytes + alone * (50 + 128);
};

export async function load(
  { ready, token }: { ready: Ready; token: string },
  { seconds, perSecond, share, only = "" }: LoadOptions,
  say: (row: LoadRow) => void = () => {},
): Promise<LoadRow[]> {
  const outside = createServer((request, response) => {
    request.resume();
    if (request.url !== "/never") response.end("well");
  });
  await new Promise<void>((resolve) => outside.listen(0, "127.0.0.1", resolve));
  const { port } = outside.address() as AddressInfo;
  const accountOf = async (name: string): Promise<Calls> => {
    const response = await fetch(`${ready.api}/accounts`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ name }),
    });
    const { result } = (await response.json()) as { result: { id: string } };
    return callsOf({ ...ready, account_id: result.id }, token);
  };
  const [calm, greedy] = [await accountOf("calm"), await accountOf("greedy")];
  const accomplices: Calls[] = [];
  for (let i = 0; i < accomplicesCount; i++) accomplices.push(await accountOf(`accomplice ${i}`));
  const neighbours = new Neighbours(ready.edge);
  await neighbours.deploy(calm, greedy, { api: ready.api, token }, port);
  const stage: Stage = { edge: ready.edge, greedy, accomplices, outside: `http://127.0.0.1:${port}` };
  const rows: LoadRow[] = [];
  try {
    for (const [name, each] of Object.entries(cases)) {
      if (!name.includes(only)) continue;
      await each.deploy(stage);
      if (each.hasCustomer === true) neighbours.addCustomer(greedy);
      const [tally, end] = [new Tally(), new AbortController()];
      const memory = watchMemory(ready.pid, end.signal);
      const culprits = each.run(stage, tally, end.signal, each.scale(share));
      const calmEnd = AbortSignal.timeout(seconds * 1000);
      const { asked, failures, tookMs } = await neighbours.ask(perSecond, calmEnd);
      end.abort();
      await culprits;
      if (each.hasCustomer === true) neighbours.removeCustomer();
      const row = { name, asked, failures, ms: quantiles(tookMs), greedy: tally.text, ...(await memory) };
      rows.push(row);
      say(row);
    }
  } finally {
    neighbours.close();
    outside.closeAllConnections();
    outside.close();
  }
  return rows;
}

async function watchMemory(
  pid: number,
  signal: AbortSignal,
): Promise<
  Pick<
    LoadRow,
    "cellsMebibytesMax" | "cellMebibytesMax" | "cellsMax" | "overBudgetMebibytes" | "frontMebibytesMax"
  >
> {
  const most = {
    cellsMebibytesMax: 0,
    cellMebibytesMax: 0,
    cellsMax: 0,
    overBudgetMebibytes: -Infinity,
    frontMebibytesMax: 0,
  };
  while (!signal.aborted) {
    const cells = cellPids(pid).map(residentMebibytes);
    const sum = Math.round(cells.reduce((all, each) => all + each, 0));
    most.cellsMebibytesMax = Math.max(most.cellsMebibytesMax, sum);
    most.cellMebibytesMax = Math.max(most.cellMebibytesMax, ...cells.map(Math.round));
    most.overBudgetMebibytes = Math.max(most.overBudgetMebibytes, sum - budgetOf(cells.length));
    most.cellsMax = Math.max(most.cellsMax, cells.length);
    most.frontMebibytesMax = Math.max(most.frontMebibytesMax, Math.round(residentMebibytes(pid)));
    await sleep(100);
  }
  return most;
}

function quantiles(tookMs: readonly number[]): LoadRow["ms"] {
  const sorted = tookMs.toSorted((a, b) => a - b);
  const at = (share: number): number => Math.round(sorted[Math.floor(sorted.length * share)] ?? 0);
  return { p50: at(0.5), p99: at(0.99), max: Math.round(sorted.at(-1) ?? 0) };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "16" },
      "per-second": { type: "string", default: "200" },
      share: { type: "string", default: "1" },
      case: { type: "string", default: "" },
    },
  });
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  say(
    "| greedy | innocent requests | failed | p50, p99, most ms | cells, the largest, all MiB | server MiB | answers to the greedy |",
  );
  say("| --- | --- | --- | --- | --- | --- | --- |");
  const failures = new Map<string, number>();
  const show = (row: LoadRow): void => {
    const { name, asked, ms, cellsMax, cellsMebibytesMax, frontMebibytesMax, greedy } = row;
    say(
      `| ${name} | ${asked} | ${row.failures.length} | ${ms.p50}, ${ms.p99}, ${ms.max} | ${cellsMax}, ${row.cellMebibytesMax}, ${cellsMebibytesMax} | ${frontMebibytesMax} | ${greedy} |`,
    );
    for (const failure of row.failures) {
      const kind = `${name}: ${failure.replace(/"ray".*/s, "")}`;
      failures.set(kind, (failures.get(kind) ?? 0) + 1);
    }
    if (row.overBudgetMebibytes > 0)
      failures.set(`${name}: cells took ${row.overBudgetMebibytes} MiB more than is stated`, 1);
  };
  const cells = ["--cells", "1", "--cell-memory-megabytes", String(cellMebibytes)];
  for (const only of Object.keys(cases).filter((name) => name.includes(values.case))) {
    // Nothing of one case remains for the next one.
    const platform = await startSelvedge(["--ephemeral", "--private-networks", "all", ...cells]);
    const options = {
      seconds: Number(values.seconds),
      perSecond: Number(values["per-second"]),
      share: Number(values.share),
      only,
    };
    await load({ ready: platform.ready, token: benchToken }, options, show);
    await platform.stop();
  }
  for (const [kind, count] of failures) say(`failed ${count} times: ${kind}`);
  process.exitCode = failures.size === 0 ? 0 : 1;
}
