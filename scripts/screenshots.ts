import { mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import sharp from "sharp";
import { openConsole, settled, type OpenConsole } from "../test/dashboard/browser.ts";
import { makeData } from "../test/dashboard/data.ts";
import { screensOf } from "../test/dashboard/screens.ts";

/*
 * `npm run screenshots [-- NAME [FOLDER]]` makes a picture of each screen of the console, in both themes and three
 * widths, into a folder (coverage/screenshots). With NAME, only screens with this text in their name, on a wide screen.
 * `npm run screenshots -- docs` makes the pictures of the README and the docs.
 */
type Data = Awaited<ReturnType<typeof makeData>>;

const pictureBytesMax = 80_000;
const filmBytesMax = 400_000;
const [only = "", folder = "coverage/screenshots"] = process.argv.slice(2);
await using console = await openConsole();
const data = await makeData(console);
if (only === "docs") await docsPictures(console, data);
else await allScreens(console, data);
for (const fault of new Set(console.faults)) process.stderr.write(`${fault}\n`);

async function allScreens({ platform, open }: OpenConsole, made: Data): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const widths = only === "" ? [1360, 860, 390] : [1360];
  for (const { name, path, prepare } of screensOf(platform.accountId, made)) {
    if (!name.includes(only)) continue;
    for (const theme of ["light", "dark"] as const)
      for (const width of widths) {
        const height = width === 390 ? 844 : 860;
        const page = await open(path, { theme, width, height, isSignedIn: name !== "sign-in" });
        await settled(page);
        await prepare?.(page);
        await page.screenshot({ path: join(folder, `${name}-${theme}-${width}.png`) });
        await page.context().close();
      }
  }
}

async function docsPictures({ platform, open }: OpenConsole, made: Data): Promise<void> {
  const account = `/${platform.accountId}`;
  const pictures = [
    [
      "trace",
      `${account}/zones/shop.example/trace?method=POST&url=${encodeURIComponent("https://shop.example/api/orders?a=1")}`,
      "light",
    ],
    ["workflow", `${account}/workflows/orders/refused`, "light"],
    ["smart-routing", `${account}/zones/api.example/routing`, "dark"],
  ] as const;
  // Enough requests for a gain that means something.
  for (let i = 0; i < 700; i++) await made.visit("https://api.example/");
  // The path that is chosen in the end, without the haste before.
  for (let i = 0; i < 60; i++) {
    await delay(50);
    await made.visit("https://api.example/");
  }
  for (const [name, path, theme] of pictures) {
    const page = await open(path, { theme, width: 1280, height: 800 });
    await settled(page);
    if (name === "trace") await page.evaluate("scrollTo(0, 600)");
    const picture = await sharp(await page.screenshot())
      .webp({ quality: 82, effort: 6 })
      .toBuffer();
    save(`console-${name}.webp`, picture, pictureBytesMax);
    await page.context().close();
  }
  const page = await open(`${account}/dispatch/customers?tab=usage&order=faults`, {
    width: 1000,
    height: 620,
  });
  save("console-live.webp", await film(page, made), filmBytesMax);
}

function save(name: string, bytes: Buffer, bytesMax: number): void {
  if (bytes.length > bytesMax) throw new Error(`${name} has ${bytes.length} bytes, more than ${bytesMax}`);
  writeFileSync(join("docs", name), bytes);
  process.stdout.write(`docs/${name}: ${bytes.length} bytes\n`);
}

/** From the customer that throws to the line that threw, in four clicks. */
async function film(page: Page, { visit }: Data): Promise<Buffer> {
  const frames: Buffer[] = [];
  const delays: number[] = [];
  const frame = async (delayMs: number): Promise<void> => {
    frames.push(await page.screenshot());
    delays.push(delayMs);
  };
  await settled(page);
  await frame(2200);
  const link = page.getByRole("row", { name: /^row 1 of/ }).getByRole("link", { name: "Live logs" });
  await link.hover();
  await frame(700);
  await link.click();
  await page.getByText("Following").waitFor();
  await frame(1200);
  for (const [index, path] of ["carla/", "carla/shoes", "carla/broken", "carla/hats"].entries()) {
    await visit(`https://shop.example/of/${path}`);
    await page.getByRole("row", { name: `row ${index + 1} of ${index + 1}` }).waitFor();
    await frame(800);
  }
  const fault = page.getByRole("row", { name: "row 3 of 4" });
  await fault.hover();
  await frame(700);
  await fault.click();
  await page.getByRole("dialog").getByText("The shelf is empty").first().waitFor();
  await frame(4000);
  return sharp(frames, { join: { animated: true } })
    .webp({ quality: 78, effort: 6, delay: delays, loop: 0, minSize: true })
    .toBuffer();
}
