import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, press, settled, type OpenConsole } from "./browser.ts";
import { makeData, scriptForm } from "./data.ts";

/* The editor of scripts, its versions and its previews, in a browser. The numbers are those of the acceptance cases of the design. */
describe.skipIf(browserPath === undefined)("the editor of scripts in the console, in a browser", () => {
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
    await page.getByLabel("Share of requests (%)").fill("10");
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

  it("11: has asked no other origin, and broken no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
