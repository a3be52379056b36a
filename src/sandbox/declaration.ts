import { declare } from "../declaration.ts";

/** Cells. */
export const declaration = declare({
  settings: {
    cells: {
      kind: "count",
      min: 1,
      max: 256,
      flag: "cells",
      env: "SELVEDGE_CELLS",
      describe:
        "processes (cells) that scripts share, divided among main and its edge processes (default: the number of CPU cores)",
    },
    cellMemoryMegabytes: {
      kind: "count",
      min: 256,
      max: 65_536,
      flag: "cell-memory-megabytes",
      env: "SELVEDGE_CELL_MEMORY_MEGABYTES",
      default: 768,
      describe: "memory limit of one cell that scripts share",
    },
    cellRequestsMax: {
      kind: "count",
      min: 10,
      max: 10_000,
      flag: "cell-requests-max",
      env: "SELVEDGE_CELL_REQUESTS_MAX",
      default: 1000,
      describe: "concurrent requests in one cell; each uses 80 KiB while it waits",
    },
    cellSocketsMax: {
      kind: "count",
      min: 10,
      max: 10_000,
      flag: "cell-sockets-max",
      env: "SELVEDGE_CELL_SOCKETS_MAX",
      default: 3000,
      describe: "concurrent WebSockets of visitors in one cell, in addition to its requests",
    },
    cellSubrequestsMax: {
      kind: "count",
      min: 10,
      max: 20_000,
      flag: "cell-subrequests-max",
      env: "SELVEDGE_CELL_SUBREQUESTS_MAX",
      default: 2000,
      describe: "concurrent subrequests (fetches and calls of bindings) of one cell; each uses 60 KiB",
    },
    accountSharePercent: {
      kind: "count",
      min: 1,
      max: 100,
      flag: "account-share-percent",
      env: "SELVEDGE_ACCOUNT_SHARE_PERCENT",
      default: 25,
      describe:
        "largest share of the concurrent requests, WebSockets and subrequests for one account; further requests wait",
    },
    requestWaitSeconds: {
      kind: "count",
      min: 1,
      max: 600,
      flag: "request-wait-seconds",
      env: "SELVEDGE_REQUEST_WAIT_SECONDS",
      default: 10,
      describe: "how long a request waits while its account is at its share, before it gets 503",
    },
  },
});
