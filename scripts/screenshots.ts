import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openConsole, settled } from "../test/dashboard/browser.ts";
import { makeData } from "../test/dashboard/data.ts";
import { screensOf } from "../test/dashboard/screens.ts";

/*
 * `npm run screenshots [-- NAME [FOLDER]]` makes a picture of each screen of the console, in both themes and three
 * widths, into a folder (coverage/screenshots). With NAME, only screens with this text in their name, on a wide screen.
 */
const [only = "", folder = "coverage/screenshots"] = process.argv.slice(2);
const widths = only === "" ? [1360, 860, 390] : only === "*" ? [1360] : [1360];
mkdirSync(folder, { recursive: true });
await using console = await openConsole();
const data = await makeData(console);
for (const { name, path, prepare } of screensOf(console.platform.accountId, data)) {
  if (!name.includes(only)) continue;
  for (const theme of ["light", "dark"] as const)
    for (const width of widths) {
      const page = await console.open(path, {
        theme,
        width,
        height: width === 390 ? 844 : 860,
        isSignedIn: name !== "sign-in",
      });
      await settled(page);
      await prepare?.(page);
      await page.screenshot({ path: join(folder, `${name}-${theme}-${width}.png`) });
      await page.context().close();
    }
}
for (const fault of new Set(console.faults)) process.stderr.write(`${fault}\n`);
