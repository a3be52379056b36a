import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

import { testMsMax, waitMsMax } from "./test/helpers/waits.ts";

// Each test file has a process of its own, and many start wrangler or the platform: all take compiled code from here.
process.env["NODE_COMPILE_CACHE"] ??= resolve("node_modules/.cache/selvedge-tests");

/** Node loads TypeScript itself. Vite would transform every module again for each run. No test replaces modules. */
const experimental = { viteModuleRunner: false, nodeLoader: false };

const shared = {
  experimental,
  testTimeout: testMsMax,
  hookTimeout: testMsMax,
  expect: { poll: { timeout: waitMsMax } },

  pool: "forks" as const,
  setupFiles: ["./test/setup.ts", "./test/helpers/none-uncaught.ts"],
};

/** Tests that mostly wait, for leases, timeouts and restarts: four of them at a time leave two cores idle. */
const waiting = [
  "test/chaos/nodes.test.ts",
  "test/cores/{changes,deaths,replace}.test.ts",
  "test/faults/{database-away,nodes-behind,outages,silent-while-reading}.test.ts",
  "test/logpush/{requests,survival}.test.ts",
  "test/objects/hibernation.test.ts",
  "test/objects/nodes/*.test.ts",
  "test/{nodes-list,pgbouncer}.test.ts",
  "test/survival/listeners.test.ts",
  "test/testkit/automation.test.ts",
  "test/tls/acme.test.ts",
  "test/workflows/{faults,nodes}.test.ts",
];

export default defineConfig({
  test: {
    experimental,
    globalSetup: "./test/helpers/postgres-template.ts",
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          include: ["src/**/*.test.ts", "test/{tidy,rooms}.test.ts"],
          maxWorkers: 2,
        },
      },
      {
        test: {
          ...shared,
          name: "whole",
          include: ["test/**/*.test.ts"],
          exclude: ["test/{tidy,rooms}.test.ts", ...waiting, "**/node_modules/**"],
          maxWorkers: 2,
        },
      },
      {
        test: {
          ...shared,
          name: "waiting",
          include: waiting,
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
