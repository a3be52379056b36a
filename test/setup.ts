import { afterEach, expect } from "vitest";
import { leaks, watchAnswers } from "./helpers/leaks.ts";

/** In every test, no response may reveal the program's location or a library's error text. */
watchAnswers();
afterEach(() => {
  expect(leaks.splice(0)).toEqual([]);
});
