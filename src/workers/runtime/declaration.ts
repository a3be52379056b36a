import { declare } from "../../declaration.ts";

/** Runs of scripts. */
export const declaration = declare({
  settings: {
    scriptCpuMs: {
      kind: "count",
      min: 1,
      max: 300_000,
      flag: "script-cpu-ms",
      env: "SELVEDGE_SCRIPT_CPU_MS",
      default: 10_000,
      describe:
        "CPU time of one run of a script, unless it or its dispatcher sets less (the public service allows 30000)",
    },
    scriptMemoryMegabytes: {
      kind: "count",
      min: 16,
      max: 1024,
      flag: "script-memory-megabytes",
      env: "SELVEDGE_SCRIPT_MEMORY_MEGABYTES",
      default: 128,
      describe: "memory of one run of a script (the public service allows 128)",
    },
    scriptSubrequestsMax: {
      kind: "count",
      min: 1,
      max: 100_000,
      flag: "script-subrequests-max",
      env: "SELVEDGE_SCRIPT_SUBREQUESTS_MAX",
      default: 1000,
      describe:
        "subrequests of one run of a script, including calls of bindings (the public service allows 1000)",
    },
    requestSubrequestsMax: {
      kind: "count",
      min: 10,
      max: 1_000_000,
      flag: "request-subrequests-max",
      env: "SELVEDGE_REQUEST_SUBREQUESTS_MAX",
      default: 10_000,
      describe:
        "subrequests of all scripts that run because of one request; at least the limit of one script",
    },
    requestScriptsMax: {
      kind: "count",
      min: 1,
      max: 10_000,
      flag: "request-scripts-max",
      env: "SELVEDGE_REQUEST_SCRIPTS_MAX",
      default: 32,
      describe:
        "scripts that run concurrently because of one request, through service bindings, dispatches and fetches (the public service allows 32 in total)",
    },
    scriptEventSeconds: {
      kind: "count",
      min: 1,
      max: 86_400,
      flag: "script-event-seconds",
      env: "SELVEDGE_SCRIPT_EVENT_SECONDS",
      default: 900,
      describe: "duration of a scheduled or queue handler, including waits (the public service allows 900)",
    },
    scriptCacheMegabytes: {
      kind: "count",
      min: 1,
      max: 65_536,
      flag: "script-cache-megabytes",
      env: "SELVEDGE_SCRIPT_CACHE_MEGABYTES",
      default: 64,
      describe: "memory for the code of recently used scripts",
    },
  },
});
