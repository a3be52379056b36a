import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

/** In a process of its own, in which nothing else happens: leaves garbage behind, and waits for its heap to become small. */
const program = (isQuiet: boolean): string => `
import { getHeapStatistics } from "node:v8";
import { setTimeout as delay } from "node:timers/promises";
import { collectWhenQuiet } from ${JSON.stringify(new URL("collect-when-quiet.ts", import.meta.url).href)};
let left = Array.from({ length: 500_000 }, (_, i) => ({ name: "n" + i, at: [i] }));
const full = getHeapStatistics().total_heap_size;
left = undefined;
collectWhenQuiet(200);
const until = Date.now() + (${isQuiet} ? 20_000 : 2000);
const isSmall = () => getHeapStatistics().total_heap_size < full / 2;
while (!isSmall() && Date.now() < until) {
  for (const end = Date.now() + 50; !${isQuiet} && Date.now() < end;);
  await delay(20);
}
console.log(isSmall());
`;
const run = async (isQuiet: boolean): Promise<string> =>
  (
    await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program(isQuiet)])
  ).stdout.trim();

it("gives back what a burst has left, when nothing happens any more", async () => {
  expect(await run(true)).toBe("true");
}, 30_000);

it("takes no time from those who need it", async () => {
  expect(await run(false)).toBe("false");
});
