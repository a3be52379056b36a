import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { benchToken, startSelvedge } from "../../bench/lib/child.ts";
import { cellsAtRest, CpuSampler } from "./cell-processes.ts";
import { callsOf } from "./platform.ts";

export interface LimitRow {
  limitMs: number;
  runs: number;
  /** Runs that ended with the error of the limit. */
  stopped: number;
  /** CPU time of the runs when they were ended. */
  usedMs: { min: number; p50: number; max: number };
  /** Runs that were ended more than 20 % or 5 ms away from the limit. */
  outside: number;
  /** Runs further below the limit than that, and how many of them passed. */
  within: { runs: number; passed: number };
}

const dispatcher = `export default {
  async fetch(request, env) {
    const [, name, cpuMs] = new URL(request.url).pathname.split("/");
    try { return await env.NS.get(name, {}, { limits: { cpuMs: Number(cpuMs) } }).fetch(request); }
    catch (error) { return new Response(error.message, { status: 500 }); }
  },
};`;
/** A script that uses a given CPU time on a quiet machine, or never ends. */
const burner = `export default { fetch(request) {
  const rounds = Number(new URL(request.url).searchParams.get("rounds") ?? Infinity);
  let x = 1;
  for (let i = 0; i < rounds; i++) for (let k = 0; k < 10_000; k++) x = (x * 1103515245 + 12345) | 0;
  return new Response(String(x));
} };`;

/**
 * Measures how exactly `cpuMs` is enforced. The platform runs in a process of its own; this process reads the
 * CPU time of the cells from the operating system.
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
    /** Sends one request, and returns the CPU time of the busiest cell. */
    const measured = async (path: string): Promise<{ status: number; body: string; usedMs: number }> => {
      await cellsAtRest(selvedge.pid); // booting takes CPU time too
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
        // Loads the script first, as loading is not part of a run.
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

/** Raises the priority of this process above the measured ones, which only root may do. */
function measureFirst(): void {
  try {
    setPriority(-10);
  } catch {
    // then the figures are coarser
  }
}

/** Measures how many rounds of the burner one millisecond of CPU time allows here. */
async function calibrate(measured: (path: string) => Promise<{ usedMs: number }>): Promise<number> {
  const rounds = 2000;
  const each: number[] = [];
  for (let i = 0; i < 5; i++) each.push(rounds / (await measured(`/burner/10000?rounds=${rounds}`)).usedMs);
  return Math.min(...each);
}

const round = (value: number): number => Math.round(value * 10) / 10;
