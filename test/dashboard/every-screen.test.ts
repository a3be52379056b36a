import axe from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, settled, type OpenConsole } from "./browser.ts";
import { makeData } from "./data.ts";
import { makeLonger, unreadable } from "./longer-texts.ts";
import { screensOf, type Shown } from "./screens.ts";

const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** A theme changes only colours, so the second one is checked by the rules that look at colours: a third of the time. */
const rulesOfColours = ["color-contrast", "link-in-text-block"];

/** The findings of axe on a page: the rule and the element. `runOnly` holds tags or rules. */
async function findings(page: Page, runOnly: readonly string[]): Promise<string[]> {
  return page.evaluate(async (runOnly) => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(
          options: object,
        ): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }>;
      };
    };
    const { violations } = await axe.run({ runOnly });
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes[0]!.html.slice(0, 200)} ${nodes[0]!.failureSummary ?? ""}`,
    );
  }, runOnly);
}

interface Box {
  left: number;
  right: number;
}

/** Faults that axe does not find: the current tab of a strip is out of view, or labels of an axis touch. */
const unseen = async (page: Page): Promise<string[]> =>
  page.evaluate(async () => {
    interface Shown {
      querySelectorAll(selector: string): Iterable<Shown>;
      getBoundingClientRect(): Box;
      checkVisibility(options: object): boolean;
    }
    interface View {
      document: Shown;
      requestAnimationFrame: (then: () => void) => void;
    }
    const { document, requestAnimationFrame: onFrame } = globalThis as unknown as View;
    // A strip is scrolled in the frame after a change of its width.
    await new Promise<void>((then) => onFrame(() => onFrame(then)));
    const boxes = (of: Shown, selector: string): Box[] =>
      [...of.querySelectorAll(selector)]
        .filter((each) => each.checkVisibility({ visibilityProperty: true }))
        .map((each) => each.getBoundingClientRect());
    const found: string[] = [];
    for (const strip of document.querySelectorAll(".tabs")) {
      const { left, right } = strip.getBoundingClientRect();
      for (const tab of boxes(strip, "[aria-current], [aria-selected=true]"))
        if (tab.left < left - 1 || tab.right > right + 1) found.push("its current tab is out of view");
    }
    for (const ruler of document.querySelectorAll(".ruler")) {
      const { left, right } = ruler.getBoundingClientRect();
      const labels = boxes(ruler, ".mark-label").toSorted((a, b) => a.left - b.left);
      if (labels.some((label) => label.left < left - 1 || label.right > right + 1))
        found.push("a label of its axis is cut");
      if (labels.some((label, index) => label.left < (labels[index - 1]?.right ?? left - 1)))
        found.push("labels of its axis overlap");
    }
    return found;
  });

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

  it("13, 55, 57: has no finding of axe, no sideways scroll, and room for longer texts, in both themes and three widths", async () => {
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
      // 13: as at a zoom of 200 % and more.
      await page.setViewportSize({ width: 320, height: 860 });
      const narrow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      if (Number(narrow) > 0) found.push(`${name} is ${String(narrow)} px too wide at 320`);
      // A load for each width and theme would take most of the time of this test.
      for (const width of widths) {
        await page.setViewportSize({ width, height: 860 });
        const over = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        if (Number(over) > 0) found.push(`${name} is ${String(over)} px too wide at ${width}`);
        for (const each of await unseen(page)) found.push(`${name} at ${width}: ${each}`);
        for (const [theme, runOnly] of [
          ["light", tags],
          ["dark", rulesOfColours],
        ] as const) {
          await page.emulateMedia({ colorScheme: theme });
          for (const each of await findings(page, runOnly))
            found.push(`${name}, ${theme} at ${width}: ${each}`);
        }
      }
      await makeLonger(page);
      for (const each of await unreadable(page)) found.push(`${name}, longer: ${each}`);
    }
    expect(found).toEqual([]);
  }, 600_000);

  it("asks no other origin than its own, breaks no policy, and reads nothing that is not there", () => {
    const { foreign, faults } = console;
    // Only the server can say that it keeps no earlier states of databases in memory.
    const refused = console.refused.filter(
      (each) => !each.endsWith("/d1/database/shop/time_travel/bookmark"),
    );
    expect([foreign, faults, refused].map((list) => [...new Set(list)])).toEqual([[], [], []]);
  });
});
