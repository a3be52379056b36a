import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, press, settled, type OpenConsole } from "./browser.ts";
import { makeData, scriptForm } from "./data.ts";

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

  const api = async <T>(method: string, path: string, body?: unknown): Promise<T> =>
    console.call<T>(method, `/accounts/${account}${path}`, body);

  it("44, 45: edits a script as text and deploys it, keeps its bindings, and rolls it back", async () => {
    const page = await console.opened("/scripts/shop-orders");
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
    await press(page, `Actions of version ${versions.items[0]!.number}`);
    await page.getByRole("menuitem", { name: "Deploy" }).click();
    await page.getByLabel("Share of the requests in percent").fill("10");
    await page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
    await page.getByRole("cell", { name: /^\d+ · \w+ 10 %, \d+ · \w+ 90 %$/ }).waitFor();
    await page.context().close();
  });

  it("44: previews edited code, shows its response and logs, and visitors still get the old one", async () => {
    const script = "tried";
    await console.call(
      "PUT",
      `/accounts/${account}/workers/scripts/${script}`,
      scriptForm('export default { fetch: () => new Response("old") };'),
    );
    const { subdomain } = await api<{ subdomain: string }>("GET", "/workers/subdomain");
    const visit = async (): Promise<string> =>
      (await data.visit(`http://${script}.${subdomain}.workers.localhost/`)).text();
    expect(await visit()).toBe("old");
    const page = await console.opened(`/scripts/${script}`);
    await page.getByLabel("index.js", { exact: true }).fill(
      `export default { async fetch(request) {
        console.log("asked for", new URL(request.url).pathname, request.headers.get("x-one"), await request.text());
        return new Response("new", { status: 201 });
      } };`,
    );
    const form = page.locator("section.card", { has: page.getByRole("heading", { name: "Preview" }) });
    await form.getByLabel("Method").selectOption("POST");
    await form.getByLabel("Path").fill("/page?x=1");
    await form.getByLabel("Headers").fill("x-one: 1");
    await form.getByLabel("Body").fill("typed");
    await page.keyboard.press("Control+Enter");
    await form.getByText("Status 201").waitFor();
    const text = async (name: string): Promise<string> =>
      (await form.getByRole("region", { name }).textContent()) ?? "";
    expect(await text("Response")).toMatch(/^HTTP\/1\.1 201\n[^]*\n\nnew$/);
    expect(await text("Logs")).toBe("log   asked for /page 1 typed");
    await form.getByText("CPU time").waitFor();
    expect(await visit()).toBe("old");
    // The code is still in the editor, and still unsaved.
    expect(await page.getByLabel("index.js", { exact: true }).inputValue()).toContain('"new"');
    await page.getByLabel("index.js", { exact: true }).fill("export default {");
    await form.getByRole("button", { name: "Send" }).click();
    await form.getByRole("alert").getByText("SyntaxError").waitFor();
    expect(await visit()).toBe("old");
    await page.context().close();
  });

  it("46: shows what two versions differ in, module by module, and no values of secrets", async () => {
    const upload = async (
      main: string,
      more: object,
      ...modules: [string, string, string][]
    ): Promise<unknown> => {
      const form = scriptForm(main, more);
      for (const [name, type, text] of modules) form.set(name, new File([text], name, { type }));
      return api("PUT", "/workers/scripts/compared", form);
    };
    const bindings = (text: string, secret: string) => [
      { type: "plain_text", name: "STAGE", text },
      { type: "secret_text", name: "KEY", text: secret },
    ];
    const code = (greeting: string): string =>
      ["import './big.txt';", ...Array.from({ length: 30 }, (_, i) => `// ${i}`)]
        .concat(`export default { fetch: () => new Response("${greeting}") };`, "// end")
        .join("\n");
    const big = `${"x".repeat(79)}\n`.repeat(30_000);
    await upload(code("one"), { bindings: bindings("test", "hidden-1") }, ["big.txt", "text/plain", big]);
    const module: [string, string, string] = ["lib.js", "application/javascript+module", "export {};"];
    const next = bindings("live", "hidden-2");
    await upload(code("two"), { bindings: next }, ["big.txt", "text/plain", `${big}y`], module);
    const page = await console.opened("/scripts/compared?tab=versions");
    await press(page, "Actions of version 2");
    await page.getByRole("menuitem", { name: "Show its code" }).press("ArrowDown");
    await page.getByRole("menuitem", { name: "Compare with version 1" }).press("Enter");
    const settings = page.getByRole("region", { name: "Changed fields" });
    await settings
      .getByRole("row", { name: 'binding STAGE plain_text {"text":"test"} plain_text' })
      .waitFor();
    const lines = page.getByRole("region", { name: "Lines of index.js" });
    const changed = lines.locator("tr:is(.removed, .added)");
    expect(await changed.locator("code").allTextContents()).toEqual(
      ["one", "two"].map((word) => `export default { fetch: () => new Response("${word}") };`),
    );
    expect(await lines.getByRole("row").count()).toBe(8);
    await page.getByRole("region", { name: "Lines of lib.js" }).getByText("export {};").waitFor();
    await page.getByText("too large to be compared line by line: 2.3 MiB of text/plain before").waitFor();
    expect(await page.content()).not.toMatch(/hidden-|binding KEY/);
    // The address is the state.
    await page.reload();
    await lines.waitFor();
    await press(page, "Swap");
    await expect.poll(async () => changed.first().textContent()).toMatch(/32.*removed.*two/);
    await page.goBack();
    await page.getByRole("region", { name: "Deployments" }).waitFor();
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
    const page = await console.opened("/scripts");
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
    const theirs = scriptForm('export default { fetch: () => new Response("theirs") };');
    await api("PUT", "/workers/scripts/from-folder/content", theirs);
    await page.getByRole("dialog").getByRole("button", { name: "Upload and deploy" }).click();
    await page.getByText("Another person has changed this meanwhile").waitFor();
    expect(await answer()).toBe("theirs");
    await press(page, "Overwrite");
    await page.getByText("The code was uploaded, and runs").waitFor();
    expect(await answer()).toBe("two <p>page</p>");
    // Nothing is typed, so the tab goes without a question.
    await page.getByLabel("Module", { exact: true }).selectOption("lib/greeting.js");
    await page.getByRole("tab", { name: "Versions" }).click();
    await press(page, "Roll back to version 2");
    const dialog = page.getByRole("dialog", { name: "Roll back to version 2" });
    await dialog.getByRole("button", { name: "Roll back", exact: true }).click();
    await page.getByText("The version was deployed").waitFor();
    expect(await answer()).toBe("theirs");
    // The version that was left is newer, so it is not offered.
    await page.getByRole("button", { name: "Roll back to version 1", exact: true }).waitFor();
    await page.context().close();
    rmSync(folder, { recursive: true });
  });

  it("makes a script, and sets a secret whose value is not in code", async () => {
    const page = await console.opened("/scripts");
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
    const page = await console.opened("/workflows");
    await page.getByRole("link", { name: "1 errored instance of orders" }).click();
    await page.getByRole("row", { name: "row 1 of 1" }).getByRole("link", { name: "refused" }).click();
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
    const page = await console.opened("/workflows/orders/waiting");
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

  it("49: peeks a queue whose consumer still gets the messages, sends one, and purges by typing the name", async () => {
    const queue = `/queues/${data.queueId}`;
    const page = await console.opened(queue);
    await press(page, "Peek");
    await page.getByText("one@shop.example").waitFor();
    await press(page, "Send a message");
    await page.getByLabel("Body", { exact: true }).fill('{ "to": "two@shop.example" }');
    await press(page, "Send");
    await page.getByText("The message was sent").waitFor();
    const depth = async (): Promise<number> =>
      (await api<{ backlog_count: number }>("GET", `${queue}/metrics`)).backlog_count;
    await expect.poll(depth).toBe(2);
    await page.getByText("two@shop.example").waitFor();
    const taker = `export default {
      async queue({ messages }, { KV }) {
        for (const { body, attempts } of messages) await KV.put("mail:" + body.to, String(attempts));
      },
    };`;
    const bindings = [{ type: "kv_namespace", name: "KV", namespace_id: data.namespaceId }];
    await api("PUT", "/workers/scripts/taker", scriptForm(taker, { bindings }));
    const settings = { max_wait_time_ms: 0 };
    const consumer = await api<{ consumer_id: string }>("POST", `${queue}/consumers`, {
      type: "worker",
      script_name: "taker",
      settings,
    });
    await expect.poll(depth).toBe(0);
    const values = `/storage/kv/namespaces/${data.namespaceId}/bulk/get`;
    const keys = ["mail:one@shop.example", "mail:two@shop.example"];
    // A peek is no attempt.
    expect(await api("POST", values, { keys })).toEqual({
      values: Object.fromEntries(keys.map((key) => [key, "1"])),
    });
    await api("DELETE", `${queue}/consumers/${consumer.consumer_id}`);
    await api("POST", `${queue}/messages`, { body: { to: "three@shop.example" } });
    await press(page, "More");
    await page.getByRole("menuitem", { name: "Purge all messages" }).click();
    const purge = page.getByRole("dialog").getByRole("button", { name: "Purge", exact: true });
    expect(await purge.getAttribute("aria-disabled")).toBe("true");
    await page.getByLabel("Type mails to confirm").fill("mails");
    expect(await depth()).toBe(1);
    await purge.click();
    await page.getByText("The queue was purged").waitFor();
    await expect.poll(depth).toBe(0);
    await page.context().close();
  });

  it("finds keys by prefix, and edits a value", async () => {
    const page = await console.opened(`/kv/${data.namespaceId}`);
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

  it("42, 43: switches smart routing on, shows the quantiles of the paths, and that one is set aside", async () => {
    const page = await console.opened("/zones/api.example/routing");
    const routing = page.getByRole("switch", { name: "Smart routing" });
    await routing.click();
    await page.getByText("Smart routing is off").waitFor();
    await routing.click();
    for (let turn = 0; turn < 20; turn++) await data.visit("https://api.example/");
    await page.getByText(/^too few requests: \d+ of 500, \d+ of 10 direct$/).waitFor();
    const paths = page.getByRole("region", { name: "Paths", exact: true }).getByRole("row");
    const quicker = paths.filter({ hasText: "127.0.0.2" });
    await quicker.getByRole("img", { name: "Times of 127.0.0.2" }).waitFor();
    const visitUntil = async (shown: Locator): Promise<void> =>
      expect
        .poll(async () => {
          await Promise.all(Array.from({ length: 50 }, async () => data.visit("https://api.example/")));
          return shown.isVisible();
        })
        .toBe(true);
    await visitUntil(quicker.getByText("chosen"));
    data.breakPath();
    // Requests that come one by one leave the path after fewer failures than exclude it; explorations add the others.
    await visitUntil(quicker.getByText("set aside, tried in"));
    await paths.filter({ hasText: "127.0.0.1" }).getByText("chosen").waitFor();
    await page.context().close();
  });

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

  it("27: asks the name server, and shows what dig prints", async () => {
    const page = await console.opened(`/zones/${data.zone.name}/dns`);
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

  // They move the clock, so they are the last ones.
  it("35: signs an address of a private picture, which is refused after its time", async () => {
    const page = await console.opened("/images?image=draft-of-a-poster");
    const signed = page.getByRole("dialog").locator(".copyable code").last();
    const minutesLeft = async (): Promise<number> => {
      const expires = new URL((await signed.textContent())!, "http://none").searchParams.get("exp");
      return Math.round((Number(expires) * 1000 - Date.now()) / 60_000);
    };
    await expect.poll(minutesLeft).toBeGreaterThan(50);
    await page.getByLabel("Minutes").fill("10");
    await expect.poll(minutesLeft).toBeLessThan(20);
    await page.getByText(/^It ends /).waitFor();
    const visit = async (): Promise<number> =>
      (await console.platform.fetch((await signed.textContent())!)).status;
    expect(await visit()).toBe(200);
    await console.platform.clock.advance("11 minutes");
    expect(await visit()).toBe(403);
    await page.context().close();
  });

  it("36: starts an instance whose step fails, and shows its attempts with their errors as they come", async () => {
    const page = await console.opened("/workflows/orders");
    await press(page, "Start an instance");
    await page.getByLabel("Parameters").fill('{ "card": "stolen", "retryDelay": "20 minutes" }');
    await page.getByLabel("Id", { exact: true }).fill("live");
    await press(page, "Start");
    await page.getByRole("heading", { name: "live" }).waitFor();
    await page.getByRole("row").filter({ hasText: "charge" }).click();
    const attempts = page.getByRole("dialog").locator(".attempts li");
    await attempts.filter({ hasText: "failed" }).filter({ hasText: "Error: The card was refused" }).waitFor();
    expect(await attempts.count()).toBe(1);
    await console.platform.clock.advance("20 minutes");
    await attempts.nth(1).filter({ hasText: "failed" }).filter({ hasText: "The card was refused" }).waitFor();
    await page.locator(".about", { hasText: "errored" }).waitFor();
    expect(await attempts.count()).toBe(2);
    await page.context().close();
  });

  it("11: has asked no other origin, and broken no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
