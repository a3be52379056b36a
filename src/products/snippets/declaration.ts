import { declare, table } from "../../declaration.ts";
import type { SnippetsTable } from "./tables.ts";

/** Snippets. */
export const declaration = declare({
  settings: {
    snippetCpuMs: {
      kind: "count",
      min: 1,
      max: 30_000,
      flag: "snippet-cpu-ms",
      env: "SELVEDGE_SNIPPET_CPU_MS",
      default: 50,
      describe: "CPU time of one run of a snippet (the public service allows 5)",
    },
    snippetMemoryMegabytes: {
      kind: "count",
      min: 8,
      max: 1024,
      flag: "snippet-memory-megabytes",
      env: "SELVEDGE_SNIPPET_MEMORY_MEGABYTES",
      default: 64,
      describe: "memory of one run of a snippet (the public service allows 2)",
    },
  },
  tables: {
    snippets: table<SnippetsTable>(),
  },
  changes: ["snippet"],
});
