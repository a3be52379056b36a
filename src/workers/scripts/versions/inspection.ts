import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { inspect, type Inspection } from "./inspect.ts";
import type { Module } from "../runtime-script.ts";
import { moduleUrl } from "../../../platform/util/module-url.ts";
import { Turns } from "../../../platform/util/turns.ts";

/** Longer code is parsed in a thread: the slowest code of this length takes some 40 milliseconds. */
const inlineCharactersMax = 16 * 1024;

/** Limits of a thread: some code takes hours to parse, and some a hundred times its length in memory. */
export interface InspectionLimits {
  seconds: number;
  heapMebibytes: number;
}
const threadLimits: InspectionLimits = { seconds: 30, heapMebibytes: 1024 };
const threadsMax = 2;

/** An account has one thread at a time, so that its uploads do not hold up those of others. */
const turns = new Map<string, { turns: Turns; waiting: number }>();
let threads = 0;
const waiting: (() => void)[] = [];

/** As `inspect`, without blocking the main thread. */
export async function inspectCode(
  account: string,
  modules: readonly Module[],
  mainModule: string,
  limits = threadLimits,
): Promise<Inspection> {
  const code = modules.map((module) =>
    module.kind === "js" || module.kind === "cjs" ? module : { ...module, content: "" },
  );
  const length = code.reduce((sum, { content }) => sum + content.length, 0);
  if (length <= inlineCharactersMax) return inspect(code, mainModule);
  return inTurn(account, () => inspectInThread(code, mainModule, limits));
}

async function inTurn<T>(account: string, work: () => Promise<T>): Promise<T> {
  const own = turns.get(account) ?? { turns: new Turns(), waiting: 0 };
  turns.set(account, own);
  own.waiting++;
  try {
    return await own.turns.take(() => withThread(work));
  } finally {
    if (--own.waiting === 0) turns.delete(account);
  }
}

async function withThread<T>(work: () => Promise<T>): Promise<T> {
  if (threads >= threadsMax) await new Promise<void>((resolve) => waiting.push(resolve));
  else threads++;
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next === undefined) threads--;
    else next();
  }
}

async function inspectInThread(
  modules: readonly Module[],
  mainModule: string,
  { seconds, heapMebibytes }: InspectionLimits,
): Promise<Inspection> {
  const worker = new Worker(moduleUrl("workers/scripts/versions/inspect-thread"), {
    workerData: { modules, mainModule },
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: heapMebibytes },
  });
  worker.on("error", () => {}); // one after the end of the time must not be uncaught
  const exited = new AbortController();
  worker.once("exit", () => exited.abort());
  const late = AbortSignal.timeout(seconds * 1000);
  try {
    const signal = AbortSignal.any([late, exited.signal]);
    const [inspection] = (await once(worker, "message", { signal })) as [Inspection];
    return inspection;
  } catch (error) {
    if ((error as { code?: string }).code === "ERR_WORKER_OUT_OF_MEMORY")
      return { fault: `Uncaught RangeError: The code needs more than ${heapMebibytes} MiB to be parsed` };
    if ((error as Error).name !== "AbortError") throw error;
    if (exited.signal.aborted)
      throw new Error("the thread that parses code ended without a result", { cause: error });
    return { fault: `Uncaught Error: The code takes longer than ${seconds} s to parse` };
  } finally {
    await worker.terminate();
  }
}
