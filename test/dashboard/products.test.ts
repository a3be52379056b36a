import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, settled, type OpenConsole } from "./browser.ts";
import { makeData } from "./data.ts";

/* Screens of the products, in a browser. The numbers are those of the acceptance cases of the design. */
describe.skipIf(browserPath === undefined)("the products in the console, in a browser", () => {
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
  const api = async <T>(method: string, path: string, body?: unknown): Promise<T> =>
    console.call<T>(method, `/accounts/${account}${path}`, body);
  const press = async (page: Page, name: string): Promise<void> =>
    page.getByRole("button", { name, exact: true }).click();

  it("44: edits a script as text and deploys it, keeps its bindings, and rolls it back", async () => {
    const page = await opened("/scripts/shop-orders");
    const field = page.getByLabel("index.js", { exact: true });
    const before = await field.inputValue();
    await field.fill(before.replace('"orders"', '"changed"'));
    await press(page, "Upload and deploy");
    await page.getByText("The code was uploaded, and runs").waitFor();
    const code = async (): Promise<string> => {
      const response = await fetch(
        `${console.platform.urls.api}/accounts/${account}/workers/scripts/shop-orders/content/v2`,
        { headers: { authorization: `Bearer ${console.platform.token}` } },
      );
      return response.text();
    };
    expect(await code()).toContain('"changed"');
    expect(await api("GET", "/workers/scripts/shop-orders/secrets")).toMatchObject([{ name: "KEY" }]);
    await page.getByRole("tab", { name: "Versions" }).click();
    await settled(page);
    const versions = await api<{ items: { number: number }[] }>(
      "GET",
      "/workers/scripts/shop-orders/versions",
    );
    const earlier = versions.items[1]!.number;
    await page.getByRole("button", { name: `Actions of version ${earlier}`, exact: true }).click();
    await page.getByRole("menuitem", { name: "Deploy" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
    await page.getByText("The version was deployed").waitFor();
    expect(await code()).not.toContain('"changed"');
    await page.context().close();
  });

  it("deploys a folder with modules of several types, and rolls back with one button", async () => {
    const folder = mkdtempSync(join(tmpdir(), "selvedge-folder-"));
    mkdirSync(join(folder, "lib"));
    const write = (greeting: string): void =>
      writeFileSync(join(folder, "lib/greeting.js"), `export const greeting = "${greeting}";`);
    writeFileSync(
      join(folder, "index.js"),
      `import { greeting } from "./lib/greeting.js"; import page from "./page.html";
       export default { fetch: () => new Response(greeting + page) };`,
    );
    writeFileSync(join(folder, "page.html"), "<p>page</p>");
    writeFileSync(join(folder, "types.ts"), "export type A = string;");
    write("one ");
    const page = await opened("/scripts");
    await press(page, "New script");
    await page.getByLabel("Name", { exact: true }).fill("from-folder");
    await page.getByRole("tab", { name: "From a folder" }).click();
    const field = page.getByLabel("A folder with the built script");
    await field.setInputFiles(folder);
    await page.getByText("1 file left out: types.ts").waitFor();
    expect(await page.getByLabel("Main module").inputValue()).toBe("index.js");
    await press(page, "Upload");
    await page.getByRole("heading", { name: "from-folder" }).waitFor();
    const { subdomain } = await api<{ subdomain: string }>("GET", "/workers/subdomain");
    const answer = async (): Promise<string> =>
      (await console.platform.fetch(`http://from-folder.${subdomain}.workers.localhost/`)).text();
    expect(await answer()).toBe("one <p>page</p>");
    write("two ");
    await press(page, "Replace with a folder");
    await field.setInputFiles(folder);
    await page.getByRole("dialog").getByRole("button", { name: "Upload and deploy" }).click();
    await page.getByText("The code was uploaded, and runs").waitFor();
    expect(await answer()).toBe("two <p>page</p>");
    await page.getByRole("tab", { name: "Versions" }).click();
    await press(page, "Roll back to version 1");
    await page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
    await page.getByText("The version was deployed").waitFor();
    expect(await answer()).toBe("one <p>page</p>");
    await page.context().close();
    rmSync(folder, { recursive: true });
  });

  it("makes a script, and sets a secret whose value is not in code", async () => {
    const page = await opened("/scripts");
    await page.keyboard.press("n");
    await page.getByLabel("Name", { exact: true }).fill("hello");
    await press(page, "Upload");
    await page.getByRole("heading", { name: "hello" }).waitFor();
    await page.getByRole("tab", { name: "Secrets" }).click();
    await press(page, "Add a secret");
    await page.getByLabel("Name", { exact: true }).fill("API_KEY");
    await page.getByLabel("Value", { exact: true }).fill("not-for-code");
    await page.getByRole("dialog").getByRole("button", { name: "As code" }).click();
    const code = page.getByRole("dialog", { name: "As code" });
    expect(await code.locator("pre").textContent()).not.toContain("not-for-code");
    await code.getByRole("button", { name: "Close" }).click();
    await press(page, "Save");
    await page.getByText("env.API_KEY").waitFor();
    await page.context().close();
  });

  it("36, 38: shows attempts with their errors, and says why a change is impossible", async () => {
    const page = await opened("/workflows/orders/refused");
    await press(page, "Go to the error");
    const panel = page.getByRole("dialog");
    await panel.getByText("The card was refused").first().waitFor();
    expect(await panel.locator(".attempts li").count()).toBe(2);
    await page.keyboard.press("Escape");
    const terminate = page.getByRole("button", { name: "Terminate", exact: true });
    expect(await terminate.getAttribute("aria-disabled")).toBe("true");
    expect(await page.getByText("it is errored").count()).toBeGreaterThan(0);
    await page.context().close();
  });

  it("pauses, resumes and ends an instance, which is followed without a reload", async () => {
    const page = await opened("/workflows/orders/waiting");
    await press(page, "Pause");
    await page.locator(".about", { hasText: "paused" }).waitFor();
    await press(page, "Resume");
    await page.locator(".about", { hasText: "waiting" }).waitFor();
    await press(page, "Send an event");
    await page.getByLabel("Type", { exact: true }).fill("shipment");
    await press(page, "Send");
    await page.locator(".about", { hasText: "complete" }).waitFor();
    await page.context().close();
  });

  it("49: peeks a queue without taking its messages, sends one, and purges by typing the name", async () => {
    const page = await opened(`/queues/${data.queueId}`);
    await press(page, "Peek");
    await page.getByText("one@shop.example").waitFor();
    await press(page, "Send a message");
    await page.getByLabel("Body", { exact: true }).fill('{ "second": true }');
    await press(page, "Send");
    await page.getByText("The message was sent").waitFor();
    const depth = async (): Promise<number> =>
      (await api<{ backlog_count: number }>("GET", `/queues/${data.queueId}/metrics`)).backlog_count;
    await expect.poll(depth).toBe(2);
    await press(page, "More");
    await page.getByRole("menuitem", { name: "Purge all messages" }).click();
    const purge = page.getByRole("dialog").getByRole("button", { name: "Purge", exact: true });
    expect(await purge.getAttribute("aria-disabled")).toBe("true");
    await page.getByLabel("Type mails to confirm").fill("mails");
    await purge.click();
    await page.getByText("The queue was purged").waitFor();
    await expect.poll(depth).toBe(0);
    await page.context().close();
  });

  it("finds keys by prefix, and edits a value", async () => {
    const page = await opened(`/kv/${data.namespaceId}`);
    await page.getByLabel("Keys that begin with").fill("page:");
    await page.getByRole("row", { name: "row 1 of 2" }).waitFor();
    await page.getByText("page:home").click();
    const field = page.getByLabel("Value", { exact: true });
    expect(await field.inputValue()).toBe("value of page:home");
    await field.fill("grün");
    await press(page, "Save");
    await page.getByText("The value was saved").waitFor();
    const value = await fetch(
      `${console.platform.urls.api}/accounts/${account}/storage/kv/namespaces/${data.namespaceId}/values/page%3Ahome`,
      { headers: { authorization: `Bearer ${console.platform.token}` } },
    );
    expect(await value.text()).toBe("grün");
    await page.context().close();
  });

  it("27: asks the name server, and shows what dig prints", async () => {
    const page = await opened(`/zones/${data.zone.name}/dns`);
    await page.keyboard.press("q");
    await page.getByLabel("Name", { exact: true }).fill("mail.shop.example");
    await press(page, "Ask");
    const answer = page.getByRole("region", { name: "Answer" });
    await answer.waitFor();
    expect(await answer.textContent()).toMatch(
      /NOERROR[^]*mail\.shop\.example\.\s+3600\s+IN\s+A\s+192\.0\.2\.25/,
    );
    await page.context().close();
  });

  it("11: has asked no other origin, and broken no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
