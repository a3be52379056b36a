import { expect as baseExpect, test as base } from "@playwright/test";
import { matchers, story } from "./runners/matchers.ts";
import { startSelvedge, type Selvedge, type StartOptions } from "./start-selvedge.ts";

/*
 * The entry of `import { test } from "selvedge/playwright"`.
 */

/** Time limit of the fixture: on a busy machine, a start may exceed Playwright's default. */
const startTimeoutMs = 60_000;

/**
 * `test` with the fixture `edge`: a platform for each worker, which is reset before each test. The browser connects to the
 * edge for every host, on ports 80 and 443, and accepts the edge's certificates.
 */
export const testWith = (options: StartOptions = {}) =>
  base.extend<{ edge: Selvedge }, { platform: Selvedge }>({
    platform: [
      // oxlint-disable-next-line no-empty-pattern -- Playwright reads the names of fixtures from the pattern
      async ({}, use) => {
        const platform = await startSelvedge(options);
        await use(platform);
        await platform.close();
      },
      { scope: "worker", timeout: startTimeoutMs },
    ],
    edge: async ({ platform }, use, info) => {
      await platform.reset();
      await use(platform);
      if (info.status !== info.expectedStatus) process.stderr.write(`${await story(platform)}\n`);
      await platform.check();
    },
    launchOptions: [
      async ({ launchOptions, platform }, use) => {
        const args = [...(launchOptions.args ?? []), `--host-resolver-rules=${hostRules(platform)}`];
        await use({ ...launchOptions, args });
      },
      { scope: "worker" },
    ],
    ignoreHTTPSErrors: true,
  });

/** Chromium's rules that resolve every host to the edge. */
function hostRules({ urls: { edge, edgeTls } }: Selvedge): string {
  const rules = [`MAP *:80 ${new URL(edge).host}`];
  if (edgeTls !== undefined) rules.push(`MAP *:443 ${new URL(edgeTls).host}`);
  return rules.join(", ");
}

export const test = testWith();
export const expect = baseExpect.extend(matchers);
