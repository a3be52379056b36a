import { filePlatform } from "./runners/file-platform.ts";
import { matchers, story, type SelvedgeMatchers } from "./runners/matchers.ts";
import type { Selvedge, StartOptions } from "./start-selvedge.ts";

/*
 * The entry of `selvedge/jest`, for `require` and for `import`.
 */

type Hook = (run: () => Promise<void>, timeoutMs: number) => void;

/** The globals of Jest in a test file. */
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
  throw new Error("selvedge/jest can be loaded only by a Jest test, with the option injectGlobals");
jest.expect.extend(matchers);

/** Time limit of hooks: on a busy machine, a start or a stop may exceed Jest's default. */
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

/** Jest's `expect`, typed for a platform. The global `expect` has the same matchers. */
export const expect = jest.expect as unknown as (
  edge: Selvedge,
) => SelvedgeMatchers & { not: SelvedgeMatchers };

export { story };
