import type { Page } from "playwright-core";
import { openConsole, settled } from "../dashboard/browser.ts";
import { makeData } from "../dashboard/data.ts";
import { makeLonger, unreadable } from "../dashboard/longer-texts.ts";
import { screensOf } from "../dashboard/screens.ts";

/**
 * Makes every text of every screen 40 % longer, from left to right and from right to left, and looks for texts that are
 * cut, for controls that overlap, and for sideways scroll. `node test/proofs/console-longer-texts.ts [part of a screen's name]`
 */
const widths = [1360, 390];
const say = (line: string): void => void process.stdout.write(`${line}\n`);

await using console = await openConsole();
const only = process.argv[2] ?? "";
const screens = screensOf(console.platform.accountId, await makeData(console));
const signedIn = await console.open("/");
const signedOut = await console.open("/", { isSignedIn: false });
const { origin } = new URL(signedIn.url());
let count = 0;
for (const { name, path, prepare } of screens.filter((each) => each.name.includes(only))) {
  const page: Page = name === "sign-in" ? signedOut : signedIn;
  await page.setViewportSize({ width: widths[0]!, height: 860 });
  await page.goto(`${origin}/dashboard${path}`);
  await settled(page);
  await prepare?.(page);
  for (const direction of ["ltr", "rtl"]) {
    await page.evaluate(`document.documentElement.dir = "${direction}"`);
    if (direction === "ltr") await makeLonger(page);
    for (const width of widths) {
      await page.setViewportSize({ width, height: 860 });
      for (const fault of await unreadable(page)) {
        say(`${name}, ${direction} at ${width}: ${fault}`);
        count++;
      }
    }
  }
  await page.evaluate(`document.documentElement.dir = "ltr"`);
}
say(`${screens.length} screens, ${count} faults`);
if (count > 0) process.exitCode = 1;
