import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach } from "node:test";
import { filePlatform } from "./runners/file-platform.ts";
import { matchers, story } from "./runners/matchers.ts";
import type { Selvedge, StartOptions } from "./start-selvedge.ts";

/*
 * The entry of `import { selvedge, assertCalled } from "selvedge/node-test"`.
 */

type Rest<M extends keyof typeof matchers> =
  Parameters<(typeof matchers)[M]> extends [unknown, ...infer R] ? R : never;

/**
 * Starts a platform for the tests of this file or this `describe`, and resets it before each test. The returned function
 * returns the platform, and throws an Error outside of tests.
 */
export const selvedge = (options: StartOptions = {}): (() => Selvedge) =>
  filePlatform({ before, beforeEach, afterEach, after }, options);

/** Throws an AssertionError unless the operation was called in a way that meets the other conditions. */
export async function assertCalled(edge: Selvedge, ...rest: Rest<"toHaveCalled">): Promise<void> {
  const { pass, message } = await matchers.toHaveCalled(edge, ...rest);
  if (!pass) assert.fail(message());
}

/** Throws an AssertionError unless each of these operations was called, and no other operation. */
export async function assertCalledOnly(edge: Selvedge, ...rest: Rest<"toHaveCalledOnly">): Promise<void> {
  const { pass, message } = await matchers.toHaveCalledOnly(edge, ...rest);
  if (!pass) assert.fail(message());
}

/** Throws an AssertionError unless the name server answers with these records, in any order. */
export async function assertAnswers(edge: Selvedge, ...rest: Rest<"toAnswer">): Promise<void> {
  const { pass, message } = await matchers.toAnswer(edge, ...rest);
  if (!pass) assert.fail(message());
}

export { story };
