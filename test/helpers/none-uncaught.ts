import { afterAll, expect } from "vitest";
import { uncaughtCounts } from "../../src/platform/util/uncaught.ts";
import { servers } from "./process.ts";

/** Listeners that are never removed, as Node reports them. */
const leakedListeners: string[] = [];
const note = ({ name, message }: Error): void => {
  if (name === "MaxListenersExceededWarning") leakedListeners.push(message);
};
process.on("warning", note);
/** Earlier files of this process may have counted some, and have failed for it. */
const before = { ...uncaughtCounts };

/** Of every test file: nothing has reached the top of this process, nor of the platforms that it started as processes. */
afterAll(() => {
  process.off("warning", note);
  expect(uncaughtCounts).toEqual(before);
  expect(leakedListeners).toEqual([]);
  const uncaught = servers.splice(0).flatMap(({ stderr }) =>
    stderr()
      .split("\n")
      .filter((line) => line.includes("an exception was not caught")),
  );
  expect(uncaught).toEqual([]);
});
