import { afterAll, afterEach, expect, vi } from "vitest";
import { leaks, watchAnswers } from "./helpers/leaks.ts";
import { longer } from "./helpers/waits.ts";

/** In every test, no response may reveal the program's location or a library's error text. */
afterAll(watchAnswers());
afterEach(() => {
  expect(leaks.splice(0)).toEqual([]);
});

// The configuration has no setting for these.
const { waitFor, waitUntil } = vi;
vi.waitFor = (callback, options = {}) => waitFor(callback, longer(options));
vi.waitUntil = (callback, options = {}) => waitUntil(callback, longer(options));
