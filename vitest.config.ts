import { defineConfig } from "vitest/config";

import { testMsMax, waitMsMax } from "./test/helpers/waits.ts";

const shared = {
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
