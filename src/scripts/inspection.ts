import { Worker } from "node:worker_threads";
import { inspect, type Inspection } from "./inspect.ts";
import type { Module } from "./runtime-script.ts";

/** Parsing this much takes some milliseconds; more is done beside the thread that serves. */
const inlineCharactersMax = 64 * 1024;

/** As `inspect`, without holding up the thread that serves. */
export async function inspectCode(modules: readonly Module[], mainModule: string): Promise<Inspection> {
  const code = modules.map((module) =>
    module.kind === "js" || module.kind === "cjs" ? module : { ...module, content: "" },
  );
  const length = code.reduce((sum, { content }) => sum + content.length, 0);
  if (length <= inlineCharactersMax) return inspect(code, mainModule);
  const worker = new Worker(new URL("./inspect-thread.ts", import.meta.url), {
    workerData: { modules: code, mainModule },
    execArgv: [],
  });
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("the thread that inspects scripts ended")));
  });
}
