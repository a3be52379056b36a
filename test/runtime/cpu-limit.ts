import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { benchToken, startSelvedge } from "../../bench/lib/child.ts";
import { cellsAtRest, CpuSampler } from "./cell-processes.ts";
import { callsOf } from "./platform.ts";

export interface LimitRow {
  limitMs: number;
  runs: number;
  /** Runs that were ended with the limit's own error. */
  stopped: number;
  /** CPU time that a run had had when it was ended. */
  usedMs: { min: number; p50: number; max: number };
  /** Runs that were ended further from the limit than 20 % or 5 ms. */
  outside: number;
  /** Runs that stay further below the limit than that, and how many of them got through. */
  within: { runs: number; passed: number };
}

const dispatcher = `export default {
  async fetch(request, env) {
    const [, name, cpuMs] = new URL(request.url).pathname.split("/");
    try { return await env.NS.get(name, {}, { limits: { cpuMs: Number(cpuMs) } }).fetch(request); }
    catch (error) { return new Response(error.message, { status: 500 }); }
  },
};`;
/** Uses so much CPU time by the clock of a quiet machine; with none given, it never ends. */
const burner = `export default { fetch(request) {
  const rounds = Number(new URL(request.url).searchParams.get("rounds") ?? Infinity);
  let x = 1;
  for (let i = 0; i < rounds; i++) for (let k = 0; k < 10_000; k++) x = (x * 1103515245 + 12345) | 0;
  return new Response(String(x));
} };`;

/**
 * How exactly `cpuMs` holds for a customer that has come near it: the platform runs as a process of its own, and the CPU time
 * of its cells is read from the operating system by this one.
 */
export async function cpuLimitTable(limits: readonly number[], runs: number): Promise<LimitRow[]> {
  const selvedge = await startSelvedge();
  try {
    const calls = await callsOf(selvedge.ready, benchToken);
    await calls.createNamespace("limited");
    await calls.deployCustomer("limited", "burner", burner);
    await calls.deploy("dispatcher", {
      code: dispatcher,
      bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "limited" }],
    });
    measureFirst();
    const sampler = new CpuSampler();
    /** One request, and what the cell that worked most for it used. */
    const measured = async (path: string): Promise<{ status: number; body: string; usedMs: number }> => {
      await cellsAtRest(selvedge.pid); // a boot takes CPU time, too
      sampler.begin(selvedge.pid);
      const state = { isOver: false };
      const asked = calls.ask("dispatcher", path).finally(() => (state.isOver = true));
      while (!state.isOver) {
        sampler.sample();
        await sleep(0.5);
      }
      const { status, body } = await asked;
      return { status, body, usedMs: sampler.end() };
    };
    await measured("/burner/50");
    const roundsPerMs = await calibrate(measured);
    const rows: LimitRow[] = [];
    for (const limitMs of limits) {
      const allowedMs = Math.max(limitMs * 0.2, 5);
      const used: number[] = [];
      let [stopped, passed] = [0, 0];
      for (let i = 0; i < runs; i++) {
        const rounds = Math.floor((limitMs - allowedMs) * roundsPerMs);
        if ((await measured(`/burner/${limitMs}?rounds=${rounds}`)).status === 200) passed++;
        // The script is to be loaded: that is no part of a run.
        while ((await measured(`/burner/${limitMs}?rounds=1`)).status !== 200);
        const { status, body, usedMs } = await measured(`/burner/${limitMs}`);
        if (status === 500 && body === "Worker exceeded CPU time limit.") stopped++;
        used.push(usedMs);
      }
      used.sort((a, b) => a - b);
      rows.push({
        limitMs,
        runs,
        stopped,
        usedMs: { min: round(used[0]!), p50: round(used[runs >> 1]!), max: round(used.at(-1)!) },
        outside: used.filter((each) => Math.abs(each - limitMs) > allowedMs).length,
        within: { runs, passed },
      });
    }
    return rows;
  } finally {
    await selvedge.stop();
  }
}

/** Whoever measures is not to wait for those that are measured; only root may say so. */
function measureFirst(): void {
  try {
    setPriority(-10);
  } catch {
    // the figures are coarser, then
  }
}

/** How much of the burner's work a millisecond of CPU time does here. */
async function calibrate(measured: (path: string) => Promise<{ usedMs: number }>): Promise<number> {
  const rounds = 2000;
  const each: number[] = [];
  for (let i = 0; i < 5; i++) each.push(rounds / (await measured(`/burner/10000?rounds=${rounds}`)).usedMs);
  return Math.min(...each);
}

const round = (value: number): number => Math.round(value * 10) / 10;
