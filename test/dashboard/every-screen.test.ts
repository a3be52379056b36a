import axe from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, settled, type OpenConsole } from "./browser.ts";
import { makeData } from "./data.ts";
import { screensOf, type Shown } from "./screens.ts";

/** The findings of axe on a page: the rule and the element. */
async function findings(page: Page): Promise<string[]> {
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(
          options: object,
        ): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }>;
      };
    };
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const { violations } = await axe.run({ runOnly: tags });
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes[0]!.html.slice(0, 200)} ${nodes[0]!.failureSummary ?? ""}`,
    );
  });
}

const widths = [1360, 860, 390];
/** `SCREENS=d1 npx vitest …` looks only at screens with this text in their name. */
const only = process.env["SCREENS"] ?? "";

describe.skipIf(browserPath === undefined)("every screen of the console, in a browser", () => {
  let console: OpenConsole;
  let screens: Shown[];
  beforeAll(async () => {
    console = await openConsole();
    const all = screensOf(console.platform.accountId, await makeData(console));
    screens = all.filter(({ name }) => name.includes(only));
  });
  afterAll(async () => console[Symbol.asyncDispose]());

  it("has no finding of axe and no sideways scroll, in both themes and three widths", async () => {
    const found: string[] = [];
    const signedIn = await console.open("/");
    const signedOut = await console.open("/", { isSignedIn: false });
    const { origin } = new URL(signedIn.url());
    for (const { name, path, prepare } of screens) {
      const page = name === "sign-in" ? signedOut : signedIn;
      await page.setViewportSize({ width: widths[0]!, height: 860 });
      await page.goto(`${origin}/dashboard${path}`);
      await settled(page);
      await prepare?.(page);
      await page.evaluate(axe.source);
      // A load for each width and theme would take most of the time of this test.
      for (const width of widths) {
        await page.setViewportSize({ width, height: 860 });
        const over = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        if (Number(over) > 0) found.push(`${name} is ${String(over)} px too wide at ${width}`);
        for (const theme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme: theme });
          for (const each of await findings(page)) found.push(`${name}, ${theme} at ${width}: ${each}`);
        }
      }
    }
    expect(found).toEqual([]);
  }, 600_000);

  it("asks no other origin than its own, and breaks no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
