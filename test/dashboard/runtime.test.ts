import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, settled, type OpenConsole } from "./browser.ts";
import { makeData } from "./data.ts";

/* Screens of what scripts do and store, in a browser. The numbers are those of the acceptance cases of the design. */
describe.skipIf(browserPath === undefined)("scripts at work in the console, in a browser", () => {
  let console: OpenConsole;
  let data: Awaited<ReturnType<typeof makeData>>;
  let account: string;
  beforeAll(async () => {
    console = await openConsole();
    data = await makeData(console);
    account = console.platform.accountId;
  });
  afterAll(async () => console[Symbol.asyncDispose]());

  const opened = async (path: string): Promise<Page> => {
    const page = await console.open(`/${account}${path}`);
    await settled(page);
    return page;
  };

  it("48: follows the runs of a script, holds them where a person looks, and goes on", async () => {
    const page = await opened("/scripts/visits?tab=logs");
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
    const page = await opened("/logs?outcome=faults&search=shelf");
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

  it("11: has asked no other origin, and broken no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
