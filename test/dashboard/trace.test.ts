import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, settled, type OpenConsole } from "./browser.ts";
import { makeData } from "./data.ts";

/* The tracer, in a browser. The numbers are those of the acceptance cases of the design. */
describe.skipIf(browserPath === undefined)("the tracer in the console, in a browser", () => {
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
  const url = "https://shop.example/api/orders";
  const inZone = (more = ""): string => `/zones/shop.example/trace?url=${encodeURIComponent(url)}${more}`;

  it("28: shows each rule's outcome, phase by phase", async () => {
    const page = await opened(inZone());
    const phases = page.getByRole("list", { name: "Phases" }).getByRole("listitem");
    expect(await phases.count()).toBe(6);
    expect(await phases.nth(2).textContent()).toMatch(/Origin rules.*acted/);
    const rule = page.getByRole("listitem").filter({ hasText: "The API of the shop" });
    expect(await rule.textContent()).toContain("acted");
    expect(await rule.getByRole("treeitem").first().textContent()).toMatch(
      /starts_with.*Bool.*true.*decides/,
    );
    await page.context().close();
  });

  it("29: follows what is typed, keeps it in the address, and marks the part that decides", async () => {
    const expression = 'http.request.method eq "POST" and http.host eq "shop.example"';
    const page = await opened(inZone(`&expression=${encodeURIComponent(expression)}`));
    const tree = page.getByRole("tree").last(); // the expression follows the phases
    const root = tree.getByRole("treeitem").first();
    await root.filter({ hasText: "false" }).waitFor();
    const method = tree.getByRole("treeitem").filter({ hasText: 'http.request.method eq "POST"' });
    const host = tree.getByRole("treeitem").filter({ hasText: 'http.host eq "shop.example"' });
    expect(
      [await method.textContent(), await host.textContent()].map((text) => text!.includes("decides")),
    ).toEqual([true, false]);
    await page.getByLabel("Method").selectOption("POST");
    await root.filter({ hasText: "true" }).waitFor();
    expect(page.url()).toContain("method=POST");
    await page.context().close();
  });

  it("30: says at the field what is wrong with an expression, and what was meant", async () => {
    const page = await opened(inZone());
    await page.getByRole("textbox", { name: "Expression" }).fill("http.hots eq 1");
    await page.getByText("Did you mean http.host?").waitFor();
    expect(await page.getByRole("textbox", { name: "Expression" }).getAttribute("aria-invalid")).toBe("true");
    await page.context().close();
  });

  it("31: traces a request of the live log as it was", async () => {
    const page = await opened("/scripts/visits?tab=logs");
    await page.getByText("Following").waitFor();
    await data.visit("https://shop.example/page/7?a=1");
    await page.getByText("GET /page/7?a=1").first().click();
    await page.getByRole("link", { name: "Trace this request" }).click();
    const routes = page.getByRole("list", { name: "Phases" }).getByRole("listitem").nth(4);
    await routes.filter({ hasText: "acted" }).waitFor();
    expect(await page.getByLabel("URL").inputValue()).toContain("/page/7?a=1");
    await page.context().close();
  });

  it("gives a test that prints what the screen shows", async () => {
    const page = await opened(inZone());
    await page.getByRole("button", { name: "Make a test of this" }).first().click();
    const text = await page.getByRole("region", { name: "Command" }).textContent();
    expect(text).toContain("selvedge rules trace 'starts_with(http.request.uri.path, \"/api/\")'");
    await page.context().close();
  });
});
