import { expect, test as base } from "vitest";
import { matchers, story, type SelvedgeMatchers } from "./runners/matchers.ts";
import { startSelvedge, type Selvedge, type StartOptions } from "./start-selvedge.ts";

/*
 * The entry of `import { test } from "selvedge/vitest"`.
 */

declare module "vitest" {
  interface Matchers<
    R extends void | Promise<void> = void | Promise<void>,
    T = unknown,
  > extends SelvedgeMatchers {}
}

expect.extend(matchers);

/** Time limit of the start, which does not count for the first test: on a busy machine it may exceed Vitest's default. */
const startTimeoutMs = 60_000;

/** `test` with the fixture `edge`: a platform for each file, which is reset before each test. */
export const testWith = (options: StartOptions = {}) => {
  const test = base
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of fixtures from the pattern
    .extend("platform", { scope: "file" }, async ({}, { onCleanup }): Promise<Selvedge> => {
      const platform = await startSelvedge(options);
      onCleanup(() => platform.close());
      return platform;
    })
    .extend("edge", async ({ platform, onTestFailed }, { onCleanup }): Promise<Selvedge> => {
      await platform.reset();
      let report = "";
      onTestFailed(() => {
        process.stderr.write(`${report}\n`);
      });
      onCleanup(async () => {
        report = await story(platform);
        await platform.check();
      });
      return platform;
    });
  test.beforeEach(async ({ platform }) => platform, startTimeoutMs);
  return test;
};

export const test = testWith();
export { expect };
