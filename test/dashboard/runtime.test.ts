import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Response } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, press, settled, type OpenConsole } from "./browser.ts";
import { fourColors, pngOf } from "../images/fixtures.ts";
import { makeData } from "./data.ts";

/* Screens of what scripts do and store, in a browser. The numbers are those of the acceptance cases of the design. */
describe.skipIf(browserPath === undefined)("scripts at work in the console, in a browser", () => {
  let console: OpenConsole;
  let data: Awaited<ReturnType<typeof makeData>>;
  let account: string;
  const folder = mkdtempSync(join(tmpdir(), "selvedge-console-"));
  beforeAll(async () => {
    // The user of cells passes through it to the files of objects.
    chmodSync(folder, 0o711);
    console = await openConsole({
      ephemeral: false,
      dataDir: join(folder, "data"),
      backupFolder: join(folder, "log"),
      objectLog: "1s",
    });
    data = await makeData(console);
    account = console.platform.accountId;
  });
  afterAll(async () => {
    await console[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  it("48: follows the runs of a script, holds them where a person looks, and goes on", async () => {
    const page = await console.opened("/scripts/visits?tab=logs");
    await page.getByText("Following").waitFor();
    for (let i = 1; i <= 40; i++) await data.visit(`https://shop.example/page/${i}`);
    await page.getByRole("row", { name: "row 40 of 40" }).waitFor();
    await page.getByRole("grid", { name: "Runs" }).hover();
    await page.mouse.wheel(0, -400);
    await page.getByText("Held · 0 new").waitFor();
    const shown = await page.locator("[data-row]").allTextContents();
    await data.visit("https://shop.example/late");
    await page.getByText("Held · 1 new").waitFor();
    expect(await page.locator("[data-row]").allTextContents()).toEqual(shown);
    await page.locator("[data-row]").last().press("End");
    await page.getByText("GET /late").waitFor();
    expect(await page.getByText("Following").count()).toBe(1);
    await page.context().close();
  });

  it("shows only the faults of a live log, by an address, with the stack of the error", async () => {
    const page = await console.opened("/logs?outcome=faults&search=shelf");
    await page.getByText("Following").waitFor();
    await data.visit("https://shop.example/page/1");
    await data.visit("https://shop.example/broken");
    await page.getByRole("row", { name: "row 1 of 1" }).press("Enter");
    const panel = page.getByRole("dialog");
    await panel.getByText("Error: The shelf is empty").waitFor();
    expect(await panel.getByText("visit of /broken").count()).toBe(1);
    await page.keyboard.press("Escape");
    await page.keyboard.press("c");
    await page.getByText("No run matches the filter").waitFor();
    await page.context().close();
  });

  it("runs several statements, shows their rows and figures, and marks a fault at its place", async () => {
    const page = await console.opened("/d1/shop");
    const sql = page.getByLabel("SQL");
    await sql.fill("select * from cheap;\nselect nam from articles");
    await sql.press("Control+Enter");
    const fault = page.locator(".caret");
    await fault.waitFor();
    expect(await fault.textContent()).toBe("2: select nam from articles\n          ^^^");
    await sql.fill(
      "update articles set price = 3 where id = 1;\nselect name, price, null as gone from articles order by id",
    );
    await sql.press("Control+Enter");
    await page.getByRole("row", { name: "row 1 of 3" }).press("Enter");
    const panel = page.getByRole("dialog");
    expect(await panel.locator("pre").allTextContents()).toEqual(["Pen", "3", "NULL"]);
    await page.keyboard.press("Escape");
    await page.getByText("1 changed").waitFor();
    expect(new URL(page.url()).searchParams.get("sql")).toContain("update articles");
    await page.reload();
    await settled(page);
    expect([await sql.inputValue(), await page.getByText("Result 1").count()]).toEqual([
      expect.stringContaining("update"),
      0,
    ]);
    await page.context().close();
  });

  it("shows tables with columns and schema, and exports and imports them", async () => {
    const page = await console.opened("/d1/shop?tab=tables");
    await page.getByRole("button", { name: "articles", exact: true }).click();
    await page.getByRole("cell", { name: "primary key" }).waitFor();
    expect(await page.getByRole("region", { name: "Schema" }).textContent()).toContain("articles_by_name");
    await page.getByRole("tab", { name: "Import and export" }).click();
    await press(page, "Export");
    const link = page.getByRole("link", { name: /^Download/ });
    await link.waitFor();
    const saved = page.waitForEvent("download");
    await link.click();
    const exported = await readFile(await (await saved).path(), "utf8");
    expect(exported).toContain('INSERT INTO "articles"');
    await page.goto(page.url().replace(/\/d1\/.*/, "/d1"));
    await press(page, "New database");
    await page.getByLabel("Name", { exact: true }).fill("copy");
    await press(page, "Create the database");
    await page.getByRole("heading", { name: "copy" }).waitFor();
    await page.getByRole("tab", { name: "Import and export" }).click();
    const file = { name: "shop.sql", mimeType: "application/sql", buffer: Buffer.from(exported) };
    await page.getByLabel("A file of SQL").setInputFiles(file);
    await press(page, "Import");
    await page.getByText(/statements of shop\.sql were run/).waitFor();
    await page.getByRole("tab", { name: "Tables" }).click();
    await page.getByRole("button", { name: "cheap view", exact: true }).waitFor();
    await page.context().close();
  });

  it("restores an earlier state of a database by typing its name, and undoes that", async () => {
    const page = await console.opened("/d1/shop?tab=time");
    const count = async (): Promise<unknown> =>
      (
        await console.call<{ results: { n: number }[] }[]>(
          "POST",
          `/accounts/${account}/d1/database/shop/query`,
          {
            sql: "select count(*) as n from articles",
          },
        )
      )[0]!.results[0]!.n;
    const before = await console.call<{ bookmark: string }>(
      "GET",
      `/accounts/${account}/d1/database/shop/time_travel/bookmark`,
    );
    await console.call("POST", `/accounts/${account}/d1/database/shop/query`, {
      sql: "delete from articles",
    });
    await page.reload();
    // The way back to the moment before a write, which is not one before the selects of this test.
    const written = page
      .getByRole("row")
      .filter({ hasText: /before a write by .*, .*:\d\d/ })
      .first();
    await written.getByRole("button", { name: "Restore" }).click();
    await page.getByText("The database gets the state of").waitFor();
    await page.keyboard.press("Escape");
    await page.getByLabel("Or a bookmark").fill(before.bookmark);
    await press(page, "Restore this state");
    const confirm = page.getByRole("dialog").getByRole("button", { name: "Restore", exact: true });
    expect(await confirm.getAttribute("aria-disabled")).toBe("true");
    await page.getByLabel("Type shop to confirm").fill("shop");
    await confirm.click();
    await page.getByText("The database was restored. The state").waitFor();
    expect(await count()).toBe(3);
    await page.getByRole("tab", { name: "Query" }).click();
    await page.getByRole("tab", { name: "Time travel" }).click();
    await press(page, "Undo");
    await page.getByLabel("Type shop to confirm").fill("shop");
    await confirm.click();
    await expect.poll(count).toBe(0);
    const query = `since=2026-01-01&before=2100-01-01&resource_product=d1`;
    const entries = async (filter: string): Promise<number> =>
      (await console.call<unknown[]>("GET", `/accounts/${account}/logs/audit?${query}&${filter}`)).length;
    expect(await entries("resource_type=query&action_type=view")).toBeGreaterThan(1);
    // The tables of the seed, and the deletion.
    expect(await entries("resource_type=query&action_type.not=view")).toBe(2);
    await page.context().close();
  });

  it("shows the stored data of an object without its code, brings it back, and deletes it", async () => {
    const page = await console.opened(`/objects/${data.objectsId}`);
    const { objectsId } = data;
    const objects = `/accounts/${account}/workers/durable_objects/namespaces/${objectsId}/objects`;
    const [object] = await console.call<{ id: string }[]>("GET", objects);
    await page.getByRole("row", { name: "row 1 of 1" }).press("Enter");
    const sql = page.getByLabel("SQL");
    const hits = async (): Promise<string | null> => {
      await page.getByRole("tab", { name: "Query" }).click();
      await sql.fill("select count(*) as hits from hits");
      await sql.press("Control+Enter");
      const grid = page.getByRole("grid", { name: "Rows of the result" });
      await grid.waitFor();
      return grid.locator("[data-row]").first().textContent();
    };
    expect(await hits()).toBe("1");
    const time = new Date();
    // Times of this field have seconds, and the next write is after it.
    await expect.poll(() => Date.now()).toBeGreaterThan(time.getTime() + 1000);
    await data.visit("https://shop.example/count");
    await sql.fill("delete from hits");
    await sql.press("Control+Enter");
    await page.getByRole("alert").waitFor();
    await page.reload();
    await settled(page);
    expect(await hits()).toBe("2");
    await page.getByRole("tab", { name: "Restore" }).click();
    const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
    await page.getByLabel("A time", { exact: true }).fill(local.toISOString().slice(0, 23));
    await press(page, "Restore this state");
    const name = object!.id.slice(0, 8);
    await page.getByLabel(`Type ${name} to confirm`).fill(name);
    await page.getByRole("dialog").getByRole("button", { name: "Restore", exact: true }).click();
    await page.getByText("The object was restored. The state").waitFor();
    expect(await hits()).toBe("1");
    await press(page, "More");
    await page.getByRole("menuitem", { name: "Delete the object" }).click();
    await page.getByLabel(`Type ${name} to confirm`).fill(name);
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("No object has stored data").waitFor();
    expect(await console.call("GET", objects)).toEqual([]);
    await page.context().close();
  });

  it("40: shows the last fault of a customer over its limit in one row, and follows that customer alone, with one click", async () => {
    const page = await console.opened("/dispatch/customers?tags=gold");
    await page.getByRole("row", { name: "row 1 of 1" }).getByRole("link", { name: "Live logs" }).click();
    await page.getByText("Following").waitFor();
    await data.visit("https://shop.example/of/berta");
    await data.visit("https://shop.example/of/anna");
    await page.getByRole("row", { name: "row 1 of 1" }).waitFor();
    expect(await page.getByText("GET /of/berta").count()).toBe(0);
    await page.getByRole("tab", { name: "Settings" }).click();
    await press(page, "Limits");
    await page.getByLabel("CPU time of a run in milliseconds").fill("40");
    await press(page, "Save");
    await page.getByText("cpu_ms 40").waitFor();
    await data.visit("https://shop.example/of/anna/spin");
    await page.getByRole("link", { name: "customers", exact: true }).click();
    await page.getByRole("tab", { name: "Usage" }).click();
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "anna" }) });
    await row.getByText("The script exceeded its CPU time limit of 40 ms.").waitFor();
    await row.getByRole("link", { name: "Live logs" }).click();
    await page.getByRole("heading", { name: "anna" }).waitFor();
    await page.getByText("Following").waitFor();
    for (const path of ["berta", "anna/after"]) await data.visit(`https://shop.example/of/${path}`);
    await page.getByRole("row", { name: "row 1 of 1" }).getByText("GET /of/anna/after").waitFor();
    expect(await page.getByText("GET /of/berta").count()).toBe(0);
    await page.context().close();
  });

  it("40: names the customer that throws first, with its last fault", async () => {
    await data.visit("https://shop.example/of/berta/broken");
    await data.visit("https://shop.example/of/berta/broken");
    const page = await console.opened("/dispatch/customers");
    await page.getByLabel("Filter customers by name").fill("BERT");
    const only = page.getByRole("row", { name: "row 1 of 1" });
    await only.getByTitle("Error: The shelf is empty").filter({ hasText: "2" }).waitFor();
    await only.getByRole("link", { name: "berta" }).click();
    await page.getByText("The shelf is empty").waitFor();
    await page.getByRole("link", { name: "customers", exact: true }).click();
    await page.getByRole("tab", { name: "Usage" }).click();
    await page.getByLabel("Order").selectOption("By faults");
    const first = page.getByRole("row", { name: /^row 1 of/ });
    await first.getByText("berta").waitFor();
    await first.getByText("Error: The shelf is empty").waitFor();
    await first.getByRole("link", { name: "Live logs" }).click();
    await page.getByRole("heading", { name: "berta" }).waitFor();
    await page.getByText("Following").waitFor();
    await page.context().close();
  });

  it("41: deletes customers by tag after their number was typed, and no others", async () => {
    const page = await console.opened("/dispatch/customers?tags=trial");
    await press(page, "Delete these");
    const button = page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true });
    await page.getByLabel("Type 2 to confirm").fill("3");
    expect(await button.getAttribute("aria-disabled")).toBe("true");
    await page.getByLabel("Type 2 to confirm").fill("2");
    await button.click();
    await page.getByText("No customer has these tags").waitFor();
    const scripts = `/accounts/${account}/edge/dispatch/namespaces/customers/scripts`;
    expect(await console.call("GET", scripts)).toMatchObject([{ script: { id: "anna" } }]);
    await page.context().close();
  });

  it("33, 34, 35: uploads pictures, transforms one at an address, makes a variant, and signs an address of a private one", async () => {
    const page = await console.opened("/images");
    const thumbnail = page.locator("img.thumbnail");
    await expect
      .poll(() =>
        thumbnail
          .first()
          .evaluate((element) => (element as unknown as { naturalWidth: number }).naturalWidth),
      )
      .toBeGreaterThan(0);
    const buffer = Buffer.from(await pngOf(fourColors(800, 600)));
    await page
      .getByLabel("Pictures")
      .first()
      .setInputFiles([{ name: "new.png", mimeType: "image/png", buffer }]);
    await page.getByRole("dialog", { name: "new.png" }).waitFor();
    await page.getByRole("dialog").getByRole("link", { name: "Transform" }).click();
    // The policy of the page allows no reads of blob addresses.
    await page.evaluate(
      "const make = URL.createObjectURL; URL.createObjectURL = (blob) => make((globalThis.lastPicture = blob));",
    );
    await page.getByRole("textbox", { name: "width", exact: true }).fill("400");
    const figure = (name: string) => page.locator(".figure", { hasText: name });
    await figure("Pixels").getByText("400 × 300").waitFor();
    await figure("Size")
      .getByText(/^[\d.,]+ (B|KB|KiB)$/)
      .waitFor();
    await figure("Time")
      .getByText(/^[\d.,]+ m?s$/)
      .waitFor();
    const url = await page.getByRole("textbox", { name: "Address of the result" }).inputValue();
    expect(url).toMatch(/^http.*\/width=400$/);
    const shown = await page.evaluate<number[]>(
      "lastPicture.arrayBuffer().then((bytes) => Array.from(new Uint8Array(bytes)))",
    );
    const window = await console.browser.newPage();
    const opened = await window.goto(url);
    expect(opened!.headers()["content-type"]).toMatch(/^image\//);
    expect((await opened!.body()).equals(Buffer.from(shown))).toBe(true);
    await window.close();
    await page.goBack();
    await page.getByRole("dialog", { name: "new.png" }).waitFor();
    await page.getByRole("switch", { name: "Private" }).click();
    await page.getByLabel("Creator").fill("anna");
    await press(page, "Save");
    const copy = page.getByRole("dialog").locator(".copyable code").last();
    await expect.poll(() => copy.textContent()).toContain("sig=");
    const address = new URL((await copy.textContent())!);
    expect((await console.platform.fetch(address)).status).toBe(200);
    address.searchParams.set("exp", "2000000000");
    expect((await console.platform.fetch(address)).status).toBe(403);
    await page.goto(page.url().replace(/images.*/, "images/settings"));
    await press(page, "New variant");
    await page.getByLabel("Name", { exact: true }).fill("card");
    await page.getByLabel("Width", { exact: true }).fill("40");
    await press(page, "Save");
    await page.getByRole("cell", { name: "card", exact: true }).waitFor();
    const variant = await console.call("GET", `/accounts/${account}/images/v1/variants/card`);
    expect(variant).toMatchObject({ variant: { options: { width: 40, height: 1200, fit: "scale-down" } } });
    await page.goto(
      page.url().replace(/images.*/, "images/playground?image=logo&width=20&height=20&fit=cover"),
    );
    await page.getByRole("button", { name: "The original" }).click({ position: { x: 2, y: 40 } });
    const written = page.getByRole("textbox", { name: "Address of the result" });
    await expect.poll(() => written.inputValue()).toMatch(/gravity=0\.\d\dx0\.[89]\d/);
    await page.getByRole("img", { name: /fit=cover,gravity=/ }).waitFor();
    await page.context().close();
  });

  it("lists the files of a script with their headers and redirects, and says that there are none", async () => {
    const page = await console.opened("/scripts/site?tab=assets");
    await page.getByRole("row", { name: "row 1 of 1" }).getByText("/index.html").waitFor();
    await page.getByText("x-frame-options: DENY").waitFor();
    expect(await page.getByRole("region", { name: "Redirects" }).textContent()).toContain("/old");
    await page.goto(page.url().replace("/site", "/visits"));
    await page.getByText("The script has no static assets").waitFor();
    await page.context().close();
  });

  it("shows the figures of the installation", async () => {
    await data.visit("https://shop.example/broken");
    const page = await console.opened("");
    const shown = page.locator(".figure", { hasText: "Script runs" }).locator(".figure-value");
    expect(Number(await shown.textContent())).toBeGreaterThan(0);
    const changes = page.getByRole("region", { name: "Last changes" });
    await changes.getByRole("link").first().waitFor();
    const { figures } = await console.call<{ figures: Record<string, number> }>(
      "GET",
      `/accounts/${account}/edge/overview`,
    );
    expect(figures).toMatchObject({ uncaught_exceptions: 0, late_alarms: 0 });
    expect(figures["failed_requests"]).toBeGreaterThan(0);
    await changes.getByRole("link").first().click();
    await page.getByRole("dialog").getByText("/client/v4").waitFor();
    await page.context().close();
  });

  it("53, 54: keeps what was typed while the server starts again, and waits as long as the API asks", async () => {
    const page = await console.opened("/d1/shop");
    const sql = page.getByLabel("SQL");
    await sql.fill("select 6 * 7 as answer");
    const offline = page.getByText("The server cannot be reached; reconnecting");
    await console.restart({ apiRateLimit: 20, apiRateWindowSeconds: 1 }, async () => {
      await sql.press("Control+Enter");
      await offline.waitFor();
    });
    await offline.waitFor({ state: "detached" });
    expect(await sql.inputValue()).toBe("select 6 * 7 as answer");

    // The window of the limit ends only when the clock moves.
    await console.platform.clock.freeze();
    const authorization = `Bearer ${console.platform.token}`;
    const ask = async (): Promise<number> =>
      (await fetch(`${console.platform.urls.api}/zones`, { headers: { authorization } })).status;
    while ((await ask()) !== 429);
    const refusal = page.waitForResponse((answer) => answer.status() === 429);
    await press(page, "Run");
    const refused = await refusal;
    await console.platform.clock.advance("1 second");
    await console.platform.clock.run();
    const again = page.waitForResponse((answer) => answer.url() === refused.url() && answer.ok());
    const seconds = Number(await refused.headerValue("retry-after"));
    await page.getByText(`The API asks to wait ${seconds} s. The call is repeated then.`).waitFor();
    const startOf = (answer: Response): number => answer.request().timing().startTime;
    const waitedMs = startOf(await again) - startOf(refused);
    // The two clocks of the browser differ by less.
    expect(waitedMs).toBeGreaterThan(seconds * 1000 - 50);
    await page.getByRole("gridcell", { name: "42", exact: true }).waitFor();
    await page.context().close();
  });

  it("11: has asked no other origin, and broken no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
