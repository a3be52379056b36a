import { openConsole, settled } from "../dashboard/browser.ts";
import { jumpsOf } from "../dashboard/scroll.ts";

/**
 * Scrolls a zone of 100,000 records in a browser, from the first one in steps of 240 px and of 100 screens, and to the
 * last one. Fails if a frame shows other rows than those of its place. `node test/proofs/console-large-zone.ts`
 */
const records = 100_000;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

await using console = await openConsole();
const account = console.platform.accountId;
const zone = await console.call<{ id: string }>("POST", "/zones", {
  name: "large.example",
  account: { id: account },
});
const lines = Array.from({ length: records }, (_, i) => `host-${String(i).padStart(6, "0")} 300 A 192.0.2.1`);
const form = new FormData();
form.set("file", new File([`$ORIGIN large.example.\n${lines.join("\n")}\n`], "large.zone"));
await console.call("POST", `/zones/${zone.id}/dns_records/import`, form);

const timed = async (what: string, work: () => Promise<unknown>): Promise<void> => {
  const start = performance.now();
  await work();
  say(`${what}: ${Math.round(performance.now() - start)} ms`);
};
const page = await console.open("/");
await settled(page);
await timed("first rows", async () => {
  await page.goto(`${new URL(page.url()).origin}/dashboard/${account}/zones/large.example/dns`);
  await page.getByRole("row", { name: "row 1 of 100,000", exact: true }).waitFor();
});
for (const steps of [
  { frames: 200, stepPx: 240 },
  { frames: 50, stepPx: 70_000 },
]) {
  const jumps = await jumpsOf(page, steps);
  say(`${steps.frames} frames of ${steps.stepPx} px: ${JSON.stringify(jumps)}`);
  if (JSON.stringify(jumps) !== "[]") process.exitCode = 1;
}
await timed("last row", async () => {
  await page.locator("[data-row]").first().press("End");
  await page
    .locator(`[data-row="${records - 1}"]`)
    .getByText("host-099999")
    .waitFor();
});
