import { filePlatform } from "./file-platform.ts";
import { matchers, story, type SelvedgeMatchers } from "./matchers.ts";
import type { Selvedge, StartOptions } from "./start-selvedge.ts";

/*
 * The entry of `selvedge/jest`, for `require` and for `import`.
 */

type Hook = (run: () => Promise<void>, timeoutMs: number) => void;

/** The functions that Jest gives to every file of tests. */
interface JestGlobals {
  beforeAll: Hook;
  beforeEach: Hook;
  afterEach: Hook;
  afterAll: Hook;
  expect: { extend(matchers: object): void };
}

declare global {
  // oxlint-disable-next-line typescript/no-namespace -- the types of Jest have this one
  namespace jest {
    // oxlint-disable-next-line typescript/no-unused-vars -- the parameters must be those of Jest
    interface Matchers<R, T = {}> extends SelvedgeMatchers {}
  }
}

const jest = globalThis as unknown as JestGlobals;
if (typeof jest.expect?.extend !== "function")
  throw new Error("Expected selvedge/jest to be loaded by a test of Jest, with injectGlobals");
jest.expect.extend(matchers);

/** A busy machine needs longer for a start and a stop than Jest waits for a hook by default. */
const hookTimeoutMs = 60_000;

/**
 * Starts a platform for the tests of this file or this `describe`, and resets it before each test. The returned function
 * returns the platform, and throws an Error outside of tests.
 */
export const selvedge = (options: StartOptions = {}): (() => Selvedge) =>
  filePlatform(
    {
      before: (run) => jest.beforeAll(run, hookTimeoutMs),
      beforeEach: (run) => jest.beforeEach(run, hookTimeoutMs),
      afterEach: (run) => jest.afterEach(run, hookTimeoutMs),
      after: (run) => jest.afterAll(run, hookTimeoutMs),
    },
    options,
  );

/** Jest's `expect` for a platform. The same matchers are there in the `expect` of all files. */
export const expect = jest.expect as unknown as (
  edge: Selvedge,
) => SelvedgeMatchers & { not: SelvedgeMatchers };

export { story };
