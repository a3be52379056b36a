import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, type OpenConsole } from "./browser.ts";
import { makeData } from "./data.ts";

/* The tracer of requests, in a browser. The numbers are those of the acceptance cases of the design. */
describe.skipIf(browserPath === undefined)("the tracer in the console, in a browser", () => {
  let console: OpenConsole;
  let data: Awaited<ReturnType<typeof makeData>>;
  beforeAll(async () => {
    console = await openConsole();
    data = await makeData(console);
  });
  afterAll(async () => console[Symbol.asyncDispose]());

  const url = "https://shop.example/api/orders";
  const traceOf = (more = ""): string => `/zones/shop.example/trace?url=${encodeURIComponent(url)}${more}`;

  it("28: shows each rule's outcome, phase by phase", async () => {
    const page = await console.opened(traceOf());
    const phases = page.getByRole("list", { name: "Phases" }).getByRole("listitem");
    expect(await phases.count()).toBe(6);
    expect(await phases.nth(2).textContent()).toMatch(/Origin rules.*acted/);
    await page.getByText("shop.example · A 192.0.2.10 · AAAA 2001:db8::10").waitFor();
    const script = page.getByRole("link", { name: "Open the script" }).first();
    expect(await script.getAttribute("href")).toMatch(/\/scripts\/visits$/);
    const rule = page.getByRole("listitem").filter({ hasText: "The API of the shop" });
    expect(await rule.textContent()).toContain("acted");
    expect(await rule.getByRole("treeitem").first().textContent()).toMatch(
      /starts_with.*Bool.*true.*decides/,
    );
    await page.context().close();
  });

  it("29: follows what is typed, keeps it in the address, and marks the part that decides", async () => {
    const expression = 'http.request.method eq "POST" and http.host eq "shop.example"';
    const page = await console.opened(traceOf(`&expression=${encodeURIComponent(expression)}`));
    const tree = page.getByRole("tree").last(); // the expression follows the phases
    const root = tree.getByRole("treeitem").first();
    await root.filter({ hasText: "false" }).waitFor();
    const method = tree.getByRole("treeitem").filter({ hasText: 'http.request.method eq "POST"' });
    const host = tree.getByRole("treeitem").filter({ hasText: 'http.host eq "shop.example"' });
    const decides = async (): Promise<boolean[]> =>
      [await method.textContent(), await host.textContent()].map((text) => text!.includes("decides"));
    expect(await decides()).toEqual([true, false]);
    await page.getByLabel("Method").selectOption("POST");
    await root.filter({ hasText: "true" }).waitFor();
    expect(page.url()).toContain("method=POST");
    expect(await decides()).toEqual([true, true]);
    await page.getByLabel("Method").selectOption("GET");
    await root.filter({ hasText: "false" }).waitFor();
    expect(await decides()).toEqual([true, false]);
    // A change elsewhere leads back to the same request.
    await page.getByRole("link", { name: "Rules", exact: true }).click();
    await page.getByRole("heading", { name: "Origin rules" }).waitFor();
    await page.getByRole("link", { name: "Trace", exact: true }).click();
    await expect.poll(() => page.getByLabel("URL").inputValue()).toBe(url);
    await page.context().close();
  });

  it("30: says at the field what is wrong with an expression, and what was meant", async () => {
    const page = await console.opened(traceOf());
    await page.getByRole("textbox", { name: "Expression" }).fill("http.hots eq 1");
    await page.getByText("Did you mean http.host?").waitFor();
    expect(await page.getByRole("textbox", { name: "Expression" }).getAttribute("aria-invalid")).toBe("true");
    await page.context().close();
  });

  it("31: traces a request of the live log as it was", async () => {
    const page = await console.opened("/scripts/visits?tab=logs");
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
    const page = await console.opened(traceOf());
    await page.getByRole("button", { name: "Create a test from this" }).first().click();
    const text = await page.getByRole("region", { name: "Command" }).textContent();
    expect(text).toContain("selvedge rules trace 'starts_with(http.request.uri.path, \"/api/\")'");
    await page.context().close();
  });

  it("11: has asked no other origin, and broken no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
