import { afterAll, expect } from "vitest";
import { uncaughtCounts } from "../../src/platform/util/uncaught.ts";
import { servers } from "./process.ts";

/** Of every test file: nothing has reached the top of this process, nor of the platforms that it started as processes. */
afterAll(() => {
  expect(uncaughtCounts).toEqual({ exception: 0, rejection: 0 });
  const uncaught = servers.flatMap(({ stderr }) =>
    stderr()
      .split("\n")
      .filter((line) => line.includes("an exception was not caught")),
  );
  expect(uncaught).toEqual([]);
});
