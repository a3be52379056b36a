import { parentPort, workerData } from "node:worker_threads";
import { inspect } from "./inspect.ts";
import type { Module } from "../runtime-script.ts";

const { modules, mainModule } = workerData as { modules: Module[]; mainModule: string };
parentPort!.postMessage(await inspect(modules, mainModule), []);
