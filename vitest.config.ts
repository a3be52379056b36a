import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const shared = {
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 10_000 } }, // a busy machine may need more than the default second

  pool: "forks" as const,
  setupFiles: ["./test/setup.ts", "./test/helpers/none-uncaught.ts"],
};

export default defineConfig({
  test: {
    // Many tests wait: two workers leave 38 % of two cores idle.
    maxWorkers: Math.max(3, Math.ceil(availableParallelism() * 1.5)),
    projects: [
      { test: { ...shared, name: "unit", include: ["src/**/*.test.ts", "test/{tidy,rooms}.test.ts"] } },
      {
        test: {
          ...shared,
          name: "whole",
          include: ["test/**/*.test.ts"],
          exclude: ["test/{tidy,rooms}.test.ts", "**/node_modules/**"],
        },
      },
    ],
  },
});
