import { Worker } from "node:worker_threads";
import { inspect, type Inspection } from "./inspect.ts";
import type { Module } from "../runtime-script.ts";
import { moduleUrl } from "../../../platform/util/module-url.ts";

/** Longer code is parsed in a thread: parsing this much takes some milliseconds. */
const inlineCharactersMax = 64 * 1024;

/** As `inspect`, without blocking the main thread. */
export async function inspectCode(modules: readonly Module[], mainModule: string): Promise<Inspection> {
  const code = modules.map((module) =>
    module.kind === "js" || module.kind === "cjs" ? module : { ...module, content: "" },
  );
  const length = code.reduce((sum, { content }) => sum + content.length, 0);
  if (length <= inlineCharactersMax) return inspect(code, mainModule);
  const worker = new Worker(moduleUrl("workers/scripts/versions/inspect-thread"), {
    workerData: { modules: code, mainModule },
    execArgv: [],
  });
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("the thread that inspects scripts ended")));
  });
}
