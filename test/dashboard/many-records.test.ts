import { Resolver } from "node:dns/promises";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jumpsOf } from "./scroll.ts";
import { browserPath, openConsole, settled, type OpenConsole } from "./browser.ts";
import { makeData } from "./data.ts";

/* Zones with many records, in a browser: the list, batches and files. The numbers are those of the acceptance cases. */
describe.skipIf(browserPath === undefined)("zones with many records in the console, in a browser", () => {
  let console: OpenConsole;
  let zone: { id: string; name: string };
  let account: string;
  beforeAll(async () => {
    console = await openConsole();
    ({ zone } = await makeData(console));
    account = console.platform.accountId;
  });
  afterAll(async () => console[Symbol.asyncDispose]());

  const opened = async (path: string, options: Parameters<OpenConsole["open"]>[1] = {}): Promise<Page> => {
    const page = await console.open(path, options);
    await settled(page);
    return page;
  };
  const dns = (): string => `/${account}/zones/${zone.name}/dns`;
  /** A zone of 10,001 records, of which 4,211 are proxied. */
  let big: Promise<{ id: string }> | undefined;
  const bigZone = async (): Promise<{ id: string }> =>
    (big ??= (async () => {
      const made = await console.call<{ id: string }>("POST", "/zones", {
        name: "big.example",
        account: { id: account },
      });
      const hosts = Array.from({ length: 10_000 }, (_, i) => ({
        type: "A",
        name: `host-${i}`,
        content: "192.0.2.1",
        ...(i < 4211 ? { proxied: true } : { ttl: 300 }),
      }));
      const posts = [...hosts, { type: "A", name: "needle", content: "192.0.2.2" }];
      for (let at = 0; at < posts.length; at += 3500)
        await console.call("POST", `/zones/${made.id}/dns_records/batch`, {
          posts: posts.slice(at, at + 3500),
        });
      return made;
    })());
  const bigDns = (): string => `/${account}/zones/big.example/dns`;
  it("14, 19, 20: a zone of 10,001 records has few rows in the document, says its count, and filters by address", async () => {
    await bigZone();
    const page = await opened(bigDns());
    await page.locator("[data-row='0']").waitFor();
    expect(await jumpsOf(page, { frames: 60, stepPx: 5000 })).toEqual([]);
    await page.locator("[data-row]").first().focus();
    await page.keyboard.press("End");
    await page.getByRole("row", { name: "row 10,001 of 10,001" }).waitFor();
    expect(await page.locator("[data-row]").count()).toBeLessThan(100);
    const filter = page.getByLabel("Filter records");
    const search = (): string => new URL(page.url()).search;
    await filter.fill("need");
    await expect.poll(search).toBe("?search=need");
    await filter.fill("needle");
    await page.getByRole("row", { name: "row 1 of 1" }).waitFor();
    await page.getByText(/^1 match/).waitFor();
    await expect.poll(search).toBe("?search=needle");
    await page.getByLabel("Type").selectOption("AAAA");
    await page.getByText("No record matches this filter").waitFor();
    expect(search()).toBe("?search=needle&type=AAAA");
    await page.goBack();
    await page.getByText(/^1 match/).waitFor();
    // Both texts are one step.
    await page.goBack();
    await page.getByText(/^10,001 records/).waitFor();
    expect([search(), await filter.inputValue()]).toEqual(["", ""]);
    await page.getByRole("row", { name: "row 1 of 10,001" }).waitFor();
    await page.context().close();
  });

  it("24: changes 4,211 records that match in two batches after one question, shows the progress, and takes it back", async () => {
    const { id } = await bigZone();
    const proxied = async (): Promise<number> => {
      const path = `/zones/${id}/dns_records?proxied=true&per_page=5000`;
      return (await console.call<unknown[]>("GET", path)).length;
    };
    const page = await opened(`${bigDns()}?proxied=true`);
    const sizes: number[] = [];
    const isSeen = Promise.withResolvers<void>();
    await page.route("**/dns_records/batch", async (route) => {
      sizes.push((route.request().postDataJSON() as { patches: unknown[] }).patches.length);
      if (sizes.length === 2) await isSeen.promise;
      await route.continue();
    });
    await page.getByLabel("Select all rows").check();
    await page.getByText("All 4,211 that match").waitFor();
    await page.getByRole("button", { name: "Change …" }).click();
    await page.getByRole("menuitem", { name: "Set to DNS only" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("4,211 records of big.example").waitFor();
    expect([sizes, await proxied()]).toEqual([[], 4211]);
    await dialog.getByRole("button", { name: "Set to DNS only" }).click();
    await dialog.getByText("3,500 of 4,211").waitFor();
    const progress = dialog.getByRole("progressbar", { name: "Progress" });
    expect([await progress.getAttribute("value"), await progress.getAttribute("max")]).toEqual([
      "3500",
      "4211",
    ]);
    isSeen.resolve();
    await page.getByText("Set to DNS only: 4,211 records").waitFor();
    expect([sizes, await dialog.count(), await proxied()]).toEqual([[3500, 711], 0, 0]);
    await page.getByText("No record matches this filter").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText(/^4,211 match/).waitFor();
    expect([sizes, await proxied()]).toEqual([[3500, 711, 3500, 711], 4211]);
    await page.context().close();
  });

  it("25: shows refused lines by number, with the reason, and lines that are left out, before a zone file is applied", async () => {
    const page = await opened(dns());
    await page.keyboard.press("i");
    const file = page.getByLabel("Zone file");
    await file.fill("new 300 IN A 192.0.2.200\nbroken 300 IN A nonsense\n");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByText("1 line refused").waitFor();
    await page.getByRole("row", { name: /^2 refused .*nonsense/ }).waitFor();
    const apply = page.getByRole("button", { name: "Apply" });
    expect(await apply.getAttribute("aria-disabled")).toBe("true");
    await page.getByRole("button", { name: "Back to the file" }).click();
    await file.fill("@ IN NS ns.elsewhere.example.\nnew 300 IN A 192.0.2.200\n");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByText("1 to add, 0 to change, 0 the same, 0 lines refused, 1 skipped").waitFor();
    await page
      .getByRole("row", { name: /^1 skipped .*NS ns.elsewhere.example. ?the zone has its own name servers/ })
      .waitFor();
    const added = async (): Promise<number> =>
      (await console.call<unknown[]>("GET", `/zones/${zone.id}/dns_records?name=new.shop.example`)).length;
    expect(await added()).toBe(0);
    await apply.click();
    await page.getByText("Imported: 1 new record, 0 changed").waitFor();
    expect(await added()).toBe(1);
    await page.context().close();
  });

  it("26: compares 10,000 lines, makes exactly the 12 new and 3 changed records, and the name server answers them", async () => {
    const { id } = await bigZone();
    const same = Array.from({ length: 9985 }, (_, i) => `host-${i} IN A 192.0.2.1`);
    const changed = [9985, 9986, 9987].map((i) => `host-${i}`);
    const added = Array.from({ length: 12 }, (_, i) => `new-${i}`);
    const file = [
      ...same,
      ...changed.map((name) => `${name} 600 IN A 192.0.2.1`),
      ...added.map((name) => `${name} 120 IN A 192.0.2.77`),
    ];
    const records = async (): Promise<Set<string>> => {
      const answer = await fetch(`${console.platform.urls.api}/zones/${id}/dns_records/export`, {
        headers: { authorization: `Bearer ${console.platform.token}` },
      });
      const lines = (await answer.text()).split("\n");
      return new Set(lines.filter((line) => !/^;|\tSOA\t/.test(line)));
    };
    const before = await records();
    const page = await opened(bigDns());
    await page.keyboard.press("i");
    const buffer = Buffer.from(file.join("\n"));
    await page
      .getByLabel("File", { exact: true })
      .setInputFiles({ name: "big.zone", mimeType: "text/plain", buffer });
    await expect.poll(() => page.getByLabel("Zone file").inputValue()).toContain("new-11");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByText("12 to add, 3 to change, 9,985 the same, 0 lines refused, 0 skipped").waitFor();
    const rows = page.getByRole("region", { name: "Differences" }).locator("tbody").getByRole("row");
    expect(await rows.count()).toBe(15);
    expect(await rows.first().locator("del, ins").allTextContents()).toEqual([
      "host-9985 A 192.0.2.1, 5 min",
      "host-9985 A 192.0.2.1, 600 s",
    ]);
    expect(await records()).toEqual(before);
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("Imported: 12 new records, 3 changed").waitFor();
    const after = await records();
    const line = (name: string, ttl: number, address: string): string =>
      `${name}.big.example.\t${ttl}\tIN\tA\t${address} ; cf_tags=cf-proxied:false`;
    expect([...before].filter((each) => !after.has(each))).toEqual(
      changed.map((name) => line(name, 300, "192.0.2.1")),
    );
    expect([...after].filter((each) => !before.has(each)).toSorted()).toEqual(
      [
        ...changed.map((name) => line(name, 600, "192.0.2.1")),
        ...added.map((name) => line(name, 120, "192.0.2.77")),
      ].toSorted(),
    );
    const resolver = new Resolver({ timeout: 5000, tries: 6 });
    const { host, port } = console.platform.urls.dns;
    resolver.setServers([`${host}:${port}`]);
    const answers = await Promise.all(
      [...changed, ...added].map((name) => resolver.resolve4(`${name}.big.example`, { ttl: true })),
    );
    expect(answers).toEqual([
      ...changed.map(() => [{ address: "192.0.2.1", ttl: 600 }]),
      ...added.map(() => [{ address: "192.0.2.77", ttl: 120 }]),
    ]);
    await page.context().close();
  });

  it("11: has asked no other origin, and broken no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
