import { afterAll, expect } from "vitest";
import { uncaughtCounts } from "../../src/platform/util/uncaught.ts";
import { servers } from "./process.ts";

/** Listeners that are never removed, as Node reports them. */
const leakedListeners: string[] = [];
process.on("warning", ({ name, message }) => {
  if (name === "MaxListenersExceededWarning") leakedListeners.push(message);
});

/** Of every test file: nothing has reached the top of this process, nor of the platforms that it started as processes. */
afterAll(() => {
  expect(uncaughtCounts).toEqual({ exception: 0, rejection: 0 });
  expect(leakedListeners).toEqual([]);
  const uncaught = servers.flatMap(({ stderr }) =>
    stderr()
      .split("\n")
      .filter((line) => line.includes("an exception was not caught")),
  );
  expect(uncaught).toEqual([]);
});
