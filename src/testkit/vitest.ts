import { expect, test as base } from "vitest";
import { matchers, story, type SelvedgeMatchers } from "./matchers.ts";
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

/** `test` with the fixture `edge`: a platform for each file, which is reset before each test. */
export const testWith = (options: StartOptions = {}) =>
  base
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of fixtures from the pattern
    .extend("platform", { scope: "file" }, async ({}, { onCleanup }): Promise<Selvedge> => {
      const platform = await startSelvedge(options);
      onCleanup(() => platform.close());
      return platform;
    })
    .extend("edge", async ({ platform, onTestFailed }, { onCleanup }): Promise<Selvedge> => {
      await platform.reset();
      let told = "";
      onTestFailed(() => {
        process.stderr.write(`${told}\n`);
      });
      onCleanup(async () => {
        told = await story(platform);
        await platform.check();
      });
      return platform;
    });

export const test = testWith();
export { expect };
