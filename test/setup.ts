import { afterEach, expect, vi } from "vitest";
import { leaks, watchAnswers } from "./helpers/leaks.ts";

/** In every test, no response may reveal the program's location or a library's error text. */
watchAnswers();
afterEach(() => {
  expect(leaks.splice(0)).toEqual([]);
});

// A busy machine may need more than the default second, for which the configuration has no setting.
const { waitFor } = vi;
vi.waitFor = (callback, options = {}) =>
  waitFor(callback, typeof options === "number" ? options : { timeout: 10_000, ...options });
