import { readFileSync } from "node:fs";
import type { CDPSession, Page } from "playwright-core";
import { openConsole, settled } from "../test/dashboard/browser.ts";
import { makeData } from "../test/dashboard/data.ts";
import { atMost, cpuMicroseconds, median, printGoals, reported, type Goal } from "./lib/measure.ts";
import { processTree } from "./lib/tree.ts";

/** The console: what a browser loads, how soon it can be used, what an hour of live logs keeps, what ten of them cost. */
const kilobyte = 1000;
const mebibyte = 1024 * 1024;
/** A CPU 4 times slower, 9.6 Mbit/s, 40 ms to the server and back. */
const slow = { cpu: 4, bytesPerSecond: 9_600_000 / 8, latencyMs: 40 };
const loads = 7;
/** An hour of a script with five runs a second. */
const runsOfAnHour = 5 * 3600;
const consoles = 10;
/** Each round measures the server without a console, and then with all of them. */
const rounds = 5;
const seconds = 12;
const largeZoneRecords = 100_000;
const filters = 15;
/** A person who types fast. */
const betweenKeysMs = 60;

await using console = await openConsole();
const data = await makeData(console);
const account = `/${console.platform.accountId}`;
const sizes = await initialBytes();
const goals: Goal[] = [
  atMost("initial code, gzip, KB", sizes.code / kilobyte, 60),
  atMost("initial styles, gzip, KB", sizes.styles / kilobyte, 15),
  atMost("sign-in usable, slow profile, s", await usable("/", "input", false), 1),
  atMost("zones usable, slow profile, s", await usable(`${account}/zones`, "[data-row]"), 1),
  ...(await filterMs()),
  atMost("trace follows a changed method, ms", await traceMs(), 200),
  ...(await liveLogs()),
  ...(await tenConsoles()),
];
printGoals(goals);

/** Bytes that a page loads before its first screen, as they are sent. */
async function initialBytes(): Promise<{ code: number; styles: number }> {
  const page = await (await fetch(console.platform.urls.dashboard)).text();
  const sum = { code: 0, styles: 0 };
  for (const [, name] of page.matchAll(/assets\/([\w.-]+)"/g)) {
    const url = new URL(`assets/${name!}`, console.platform.urls.dashboard);
    const response = await fetch(url, { headers: { "accept-encoding": "gzip" } });
    await response.arrayBuffer();
    const length = Number(response.headers.get("content-length"));
    sum[name!.endsWith(".css") ? "styles" : "code"] += length;
  }
  return sum;
}

/** Seconds from the start of a load without a cache until an element can be used. Median of several loads. */
async function usable(path: string, selector: string, isSignedIn = true): Promise<number> {
  const times: number[] = [];
  for (let i = -1; i < loads; i++) {
    const page = await console.open("/", { isSignedIn });
    const session = await page.context().newCDPSession(page);
    await slowDown(session);
    const start = performance.now();
    await page.goto(`${new URL(console.platform.urls.dashboard).origin}/dashboard${path}`, {
      waitUntil: "commit",
    });
    await page.locator(selector).first().waitFor();
    if (i >= 0) times.push((performance.now() - start) / 1000);
    await page.context().close();
  }
  return median(times);
}

/** Milliseconds from the last change of a filter in a large zone until its only row is shown. Medians. */
async function filterMs(): Promise<Goal[]> {
  const zone = await console.call<{ id: string }>("POST", "/zones", {
    name: "large.example",
    account: { id: console.platform.accountId },
  });
  const lines = Array.from({ length: largeZoneRecords }, (_, i) => `host-${i} 300 A 192.0.2.1`);
  const form = new FormData();
  form.set("file", new File([lines.join("\n")], "large.zone"));
  await console.call("POST", `/zones/${zone.id}/dns_records/import`, form);
  const page = await console.open(`${account}/zones/large.example/dns`);
  await settled(page);
  const field = page.getByLabel("Filter records");
  const times: Record<"pasted" | "typed", number[]> = { pasted: [], typed: [] };
  for (let i = -1; i < filters; i++)
    for (const [index, way] of (["pasted", "typed"] as const).entries()) {
      const name = `host-${12_345 + 2 * i + index}`;
      if (way === "typed") {
        await field.press("Control+a");
        await field.pressSequentially(name.slice(0, -1), { delay: betweenKeysMs });
      }
      const start = performance.now();
      await (way === "typed" ? field.press(name.at(-1)!) : field.fill(name));
      await page.locator("[data-row='0']").getByText(name, { exact: true }).waitFor();
      if (i >= 0) times[way].push(performance.now() - start);
    }
  await page.context().close();
  return (["pasted", "typed"] as const).map((way) =>
    atMost(`filter of 100,000 records, ${way}, shows its rows, ms`, median(times[way]), 300),
  );
}

/** Milliseconds from the change of a request's method until the tree of an expression has its new value. Median. */
async function traceMs(): Promise<number> {
  const query = new URLSearchParams({
    url: `https://${data.zone.name}/`,
    expression: 'http.request.method eq "POST"',
  });
  const page = await console.open(`${account}/zones/${data.zone.name}/trace?${query.toString()}`);
  await settled(page);
  const value = page.getByRole("tree").last().getByRole("treeitem").first();
  const times: number[] = [];
  for (let i = -1; i < filters; i++) {
    const isPost = i % 2 === 0;
    const start = performance.now();
    await page.getByLabel("Method").selectOption(isPost ? "POST" : "GET");
    await value.filter({ hasText: String(isPost) }).waitFor();
    if (i >= 0) times.push(performance.now() - start);
  }
  await page.context().close();
  return median(times);
}

async function slowDown(session: CDPSession): Promise<void> {
  const { cpu, bytesPerSecond, latencyMs } = slow;
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  await session.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: latencyMs,
    downloadThroughput: bytesPerSecond,
    uploadThroughput: bytesPerSecond,
  });
  await session.send("Emulation.setCPUThrottlingRate", { rate: cpu });
}

async function heapMegabytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize / mebibyte;
}

async function liveLogs(): Promise<Goal[]> {
  const page = await console.open(`${account}/scripts/visits?tab=logs`);
  await page.getByText("Following").waitFor();
  const before = await heapMegabytes(page);
  let full = 0;
  for (let sent = 0; sent < runsOfAnHour; sent += 100) {
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) =>
        (await data.visit(`https://shop.example/page/${sent + i}`)).arrayBuffer(),
      ),
    );
    if (full === 0 && sent > runsOfAnHour * 0.6) full = await heapMegabytes(page);
  }
  await page
    .getByText(`/page/${runsOfAnHour - 1}`)
    .first()
    .waitFor();
  const after = await heapMegabytes(page);
  const rows = await page.locator("[data-row]").count();
  await page.context().close();
  return [
    reported("heap with an empty live log, MiB", before),
    atMost("heap after an hour of live logs, MiB", after, 64),
    reported("the same, to that after 0.6 hours", after / full),
    atMost("rows in the document", rows, 100),
  ];
}

/** CPU time of the server with ten consoles open on different screens, beyond that without any: medians of rounds. */
async function tenConsoles(): Promise<Goal[]> {
  const pid = processTree(process.pid).findLast((each) =>
    /selvedge\.js\0serve/.test(readFileSync(`/proc/${each}/cmdline`, "latin1")),
  )!;
  const zone = `${account}/zones/api.example`;
  const paths = [
    account,
    `${account}/zones`,
    `${account}/zones/${data.zone.name}/dns`,
    `${zone}/routing`,
    `${account}/scripts/visits?tab=logs`,
    `${account}/logs`,
    `${account}/workflows/orders/waiting`,
    `${account}/dispatch/customers?tab=usage`,
    `${account}/queues/${data.queueId}`,
    `${account}/audit`,
  ].slice(0, consoles);
  const idle: number[] = [];
  const beyond: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const without = await shareOfCore(pid);
    const pages: Page[] = [];
    for (const path of paths) pages.push(await console.open(path));
    for (const page of pages) await settled(page);
    idle.push(without);
    beyond.push((await shareOfCore(pid)) - without);
    for (const page of pages) await page.context().close();
  }
  return [
    reported("server without a console, % of a core", median(idle) * 100),
    atMost(`${consoles} open consoles, % of a core`, median(beyond) * 100, 1),
    reported("the same, least of the rounds", Math.min(...beyond) * 100),
    reported("the same, most of the rounds", Math.max(...beyond) * 100),
  ];
}

async function shareOfCore(pid: number): Promise<number> {
  const [before, start] = [cpuMicroseconds(pid), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  return (cpuMicroseconds(pid) - before) / 1000 / (performance.now() - start);
}
