import axe from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, settled, type OpenConsole } from "./browser.ts";
import { makeData } from "./data.ts";
import { screensOf, type Shown } from "./screens.ts";

/** The findings of axe on a page: the rule and the element. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
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

describe.skipIf(browserPath === undefined)("every screen of the console, in a browser", () => {
  let console: OpenConsole;
  let screens: Shown[];
  beforeAll(async () => {
    console = await openConsole();
    screens = screensOf(console.platform.accountId, await makeData(console));
  });
  afterAll(async () => console[Symbol.asyncDispose]());

  it.each([
    ["light", 1360],
    ["dark", 1360],
    ["light", 860],
    ["dark", 860],
    ["light", 390],
    ["dark", 390],
  ] as const)(
    "has no finding of axe, %s at %i pixels, and no sideways scroll",
    async (theme, width) => {
      const found: string[] = [];
      const signedIn = await console.open("/", { theme, width });
      const signedOut = await console.open("/", { theme, width, isSignedIn: false });
      const { origin } = new URL(signedIn.url());
      for (const { name, path, prepare } of screens) {
        const page = name === "sign-in" ? signedOut : signedIn;
        await page.goto(`${origin}/dashboard${path}`);
        await settled(page);
        await prepare?.(page);
        for (const each of await findings(page)) found.push(`${name} ${each}`);
        const over = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        if (Number(over) > 0) found.push(`${name} is ${String(over)} px too wide`);
      }
      await signedIn.context().close();
      await signedOut.context().close();
      expect(found).toEqual([]);
    },
    180_000,
  );

  it("asks no other origin than its own, and breaks no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
