import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../helpers/free-port.ts";
import { browserPath, openConsole, press, type OpenConsole } from "./browser.ts";
import { scriptForm } from "./data.ts";

/* The console saves nothing over the change of another person. */
describe.skipIf(browserPath === undefined)("changes of other people in the console, in a browser", () => {
  let console: OpenConsole;
  let account: string;
  let zone: string;
  beforeAll(async () => {
    // The public DNS is the platform's own.
    const dns = `127.0.0.1:${await freePort()}`;
    console = await openConsole({ dnsListen: dns, resolvers: dns, activation: "dns" });
    account = console.platform.accountId;
    ({ id: zone } = await console.call<{ id: string }>("POST", "/zones", {
      name: "shop.example",
      account: { id: account },
      type: "full",
    }));
  });
  afterAll(async () => console[Symbol.asyncDispose]());

  it("saves no record over a change that the person has not seen", async () => {
    const records = `/zones/${zone}/dns_records`;
    const made = { type: "A", name: "shared", content: "192.0.2.1" };
    const { id } = await console.call<{ id: string }>("POST", records, made);
    const page = await console.opened(`/zones/shop.example/dns?record=${id}`);
    const field = page.getByLabel("IPv4 address");
    await field.fill("192.0.2.2");
    await console.call("PATCH", `${records}/${id}`, { content: "192.0.2.3" });
    await press(page, "Save");
    await page.getByText("Nothing was changed").waitFor();
    const contentOf = async (): Promise<string> =>
      (await console.call<{ content: string }>("GET", `${records}/${id}`)).content;
    expect(await contentOf()).toBe("192.0.2.3");
    await press(page, "Keep mine");
    await press(page, "Save");
    await page.getByText("The record was saved").waitFor();
    expect(await contentOf()).toBe("192.0.2.2");
    await page.context().close();
  });

  it("imports no zone file into a zone that has changed since it was compared", async () => {
    const records = `/zones/${zone}/dns_records`;
    const made = { type: "A", name: "file", content: "192.0.2.1", ttl: 300 };
    const { id } = await console.call<{ id: string }>("POST", records, made);
    const ttl = async (): Promise<number> =>
      (await console.call<{ ttl: number }>("GET", `${records}/${id}`)).ttl;
    const page = await console.opened("/zones/shop.example/dns");
    await page.keyboard.press("i");
    await page.getByLabel("Zone file").fill("file 600 IN A 192.0.2.1\n");
    await press(page, "Compare");
    await page.getByText("file A 192.0.2.1, 5 min").waitFor();
    await console.call("PATCH", `${records}/${id}`, { ttl: 3600, comment: "theirs" });
    await press(page, "Apply");
    await page.getByText("The zone was changed meanwhile. Nothing was imported.").waitFor();
    expect(await ttl()).toBe(3600);
    await press(page, "Compare again");
    await page.getByText("file A 192.0.2.1, 1 h, comment “theirs”").waitFor();
    await press(page, "Apply");
    await page.getByText("Imported: 0 new records, 1 changed").waitFor();
    expect(await ttl()).toBe(600);
    await page.context().close();
  });

  it("deploys edited code after a rollback, and over a change of another person only when asked", async () => {
    const script = `/accounts/${account}/workers/scripts/edited`;
    const form = (text: string): FormData =>
      scriptForm(`export default { fetch: () => new Response("${text}") };`);
    await console.call("PUT", script, form("first"));
    await console.call("PUT", script, form("second"));
    const page = await console.opened("/scripts/edited?tab=versions");
    await press(page, "Roll back to version 1");
    const dialog = page.getByRole("dialog", { name: "Roll back to version 1" });
    await dialog.getByRole("button", { name: "Roll back", exact: true }).click();
    await page.getByText("The version was deployed").waitFor();
    await page.getByRole("tab", { name: "Code" }).click();
    const field = page.getByLabel("index.js");
    await expect.poll(() => field.inputValue()).toContain("first");
    const answered = async (): Promise<string> =>
      (await console.platform.fetchScript("edited", "https://any.example/")).text();
    // After an upload the code is read again.
    const isRead = async (): Promise<void> =>
      page.getByText("Settings and bindings stay as they are.", { exact: true }).waitFor();
    const edit = async (text: string): Promise<void> => {
      await field.fill(`export default { fetch: () => new Response("${text}") };`);
      await press(page, "Upload and deploy");
    };
    await edit("third");
    await expect.poll(answered).toBe("third");

    await isRead();
    await field.fill("one\ntwo");
    expect(await page.locator(".line-numbers").textContent()).toBe("1\n2");
    await field.fill("typed");
    for (const leave of [
      async () => page.getByRole("tab", { name: "Versions" }).click(),
      async () => page.getByRole("link", { name: "Zones" }).click(),
      async () => {
        await page.getByRole("button", { name: "owner@selvedge.localhost" }).click();
        await page.getByRole("menuitem", { name: "Sign out" }).click();
      },
    ]) {
      await leave();
      await press(page, "Go on editing");
      expect(await field.inputValue()).toBe("typed");
    }
    await page.getByRole("link", { name: "Zones" }).click();
    await press(page, "Discard");
    await page.getByRole("heading", { name: "Zones" }).waitFor();
    await page.goBack();
    await isRead();
    await field.fill("typed again");
    await page.goForward();
    await press(page, "Go on editing");
    expect(await field.inputValue()).toBe("typed again");
    await console.call("PUT", `${script}/content`, form("theirs"));
    await edit("mine");
    await page.getByText("Another person has changed this meanwhile").waitFor();
    expect(await answered()).toBe("theirs");
    await press(page, "Overwrite");
    await expect.poll(answered).toBe("mine");

    await isRead();
    await console.call("PUT", `${script}/content`, form("theirs again"));
    await edit("given up");
    await press(page, "Take theirs");
    await expect.poll(() => field.inputValue()).toContain("theirs again");
    await page.context().close();
  });

  it("saves no snippet rule over a change that the person has not seen", async () => {
    const path = `/zones/${zone}/snippets/snippet_rules`;
    const saved = async (): Promise<{ id: string; expression: string }[]> => console.call("GET", path);
    const code = "export default { fetch: () => new Response() };";
    await console.call("PUT", `/zones/${zone}/snippets/redirect`, snippetForm({ "main.js": code }));
    await console.call("PUT", path, { rules: [{ snippet_name: "redirect", expression: "ssl" }] });
    const [first] = await saved();
    const page = await console.opened(`/zones/shop.example/snippets?rule=${first!.id}`);
    await page.getByLabel("When requests match").fill('http.host eq "mine.example"');
    const theirs = 'http.host eq "theirs.example"';
    await console.call("PUT", path, { rules: [{ snippet_name: "redirect", expression: theirs }] });
    await press(page, "Save");
    await page.getByText("Nothing was changed").waitFor();
    await page.getByText("This rule was changed meanwhile").waitFor();
    const save = page.getByRole("button", { name: "Save", exact: true });
    expect(await save.getAttribute("aria-disabled")).toBe("true");
    expect(await saved()).toMatchObject([{ expression: theirs }]);
    await press(page, "Keep mine");
    await press(page, "Save");
    await page.getByText("The rule was saved").waitFor();
    expect(await saved()).toMatchObject([{ expression: 'http.host eq "mine.example"' }]);

    await press(page, "Actions of rule 1");
    await page.getByRole("menuitem", { name: "Edit the rule" }).click();
    await page.getByLabel("Description").fill("Kept");
    await console.call("PUT", path, { rules: [] });
    await press(page, "Save");
    await press(page, "Add it again");
    await press(page, "Save");
    await expect.poll(saved).toMatchObject([{ description: "Kept" }]);
    await page.context().close();
  });

  const conflict = "Another person has changed this meanwhile";

  it("saves no code of a snippet over a change that the person has not seen, and keeps its modules", async () => {
    const path = `/zones/${zone}/snippets/parted`;
    const put = async (text: string): Promise<void> => {
      const main = `export default { fetch: () => new Response("${text}") };`;
      await console.call("PUT", path, snippetForm({ "other.js": "export default 1;", "start.js": main }));
    };
    await put("first");
    const page = await console.opened("/zones/shop.example/snippets?snippet=parted");
    const field = page.getByLabel("start.js");
    await field.fill("export default { fetch: () => new Response('mine') };");
    await put("theirs");
    await press(page, "Save");
    await page.getByText(conflict).waitFor();
    await press(page, "Take theirs");
    await expect.poll(() => field.inputValue()).toContain("theirs");
    await field.fill((await field.inputValue()).replace("theirs", "both"));
    await press(page, "Save");
    await page.getByText("The snippet was saved").waitFor();
    const stored = await fetch(`${console.platform.urls.api}${path}/content`, {
      headers: { authorization: `Bearer ${console.platform.token}` },
    });
    const parts = [...(await stored.formData())].map(async ([, part]) => (part as File).text());
    expect(await Promise.all(parts)).toEqual(["export default 1;", expect.stringContaining("both")]);
    await page.context().close();
  });

  it("53: makes, deletes and replaces no rules or schedules that the person has not seen", async () => {
    const rules = `/zones/${zone}/rulesets/phases/http_request_origin/entrypoint`;
    const page = await console.opened("/zones/shop.example/rules?rule=new");
    await page.getByLabel("Port").fill("8443");
    const route = { action: "route", action_parameters: { origin: { port: 81 } }, expression: "ssl" };
    const { id } = await console.call<{ id: string }>("PUT", rules, { rules: [route] });
    await press(page, "Save");
    await page.getByText("already").waitFor();
    await press(page, "Cancel");
    await press(page, "Actions of rule 1");
    await page.getByRole("menuitem", { name: "Delete" }).click();
    const rulePath = `/zones/${zone}/rulesets/${id}/rules`;
    const [rule] = (await console.call<{ rules: { id: string }[] }>("GET", rules)).rules;
    await console.call("PATCH", `${rulePath}/${rule!.id}`, { ...route, expression: "not ssl" });
    await press(page, "Delete");
    await page.getByText("Nothing was changed").waitFor();
    expect(await console.call("GET", rules)).toMatchObject({ rules: [{ expression: "not ssl" }] });
    await page.goto(`${page.url()}?rule=${rule!.id}`);
    await page.getByLabel("Port").fill("8445");
    await console.call("DELETE", `${rulePath}/${rule!.id}`);
    await press(page, "Save");
    await page.getByText("This rule was deleted meanwhile").waitFor();
    await press(page, "Add it again");
    await press(page, "Save");
    await page.getByText("The rule was saved").waitFor();
    expect(await console.call("GET", rules)).toMatchObject({
      rules: [{ action_parameters: { origin: { port: 8445 } }, expression: "not ssl" }],
    });

    await console.call(
      "PUT",
      `/accounts/${account}/workers/scripts/edited`,
      scriptForm("export default { fetch: () => new Response() };"),
    );
    const schedules = `/accounts/${account}/workers/scripts/edited/schedules`;
    await page.goto(page.url().replace(/zones.*/, "scripts/edited?tab=schedules"));
    const lines = page.getByRole("textbox", { name: "Schedules" });
    await lines.fill("wrong");
    await console.call("PUT", schedules, [{ cron: "2 * * * *" }]);
    // A refused save reads the schedules again, and replaces neither the lines nor their tag.
    await press(page, "Save");
    await page.getByRole("cell", { name: "2 * * * *" }).waitFor();
    expect(await lines.inputValue()).toBe("wrong");
    await lines.fill("1 * * * *");
    await press(page, "Save");
    await page.getByText(conflict).waitFor();
    expect(await console.call("GET", schedules)).toMatchObject({ schedules: [{ cron: "2 * * * *" }] });
    await press(page, "Go on editing");

    // The typed line stays while the server cannot be reached, and when the schedules cannot be read again.
    await page.context().setOffline(true);
    await press(page, "Save");
    const offline = page.getByText("The server cannot be reached; reconnecting");
    await offline.waitFor();
    await page.context().setOffline(false);
    await offline.waitFor({ state: "detached" });
    await console.call("DELETE", `/accounts/${account}/workers/scripts/edited`);
    await press(page, "Save");
    await page.getByText("Not found").waitFor();
    expect(await lines.inputValue()).toBe("1 * * * *");
    await page.context().close();
  });

  it("18: names the name servers of a zone with a copy of each, and asks the public DNS for them", async () => {
    // The platform looks by itself a second after the zone's creation, so not while the clock stands.
    await console.platform.clock.freeze();
    const page = await console.opened("/zones");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await press(page, "Add a zone");
    await page.getByLabel("Domain").fill("new.example");
    await press(page, "Add the zone");
    const [zone] = await console.call<{ name_servers: string[] }[]>("GET", "/zones?name=new.example");
    const copy = page.getByRole("button", { name: `Copy ${zone!.name_servers[0]}` });
    await copy.click();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(zone!.name_servers[0]);
    await page.locator(".state", { hasText: "pending" }).waitFor();
    await press(page, "Check the name servers");
    await page.locator(".state", { hasText: "active" }).waitFor();
    await console.platform.clock.run();
    await page.context().close();
  });

  it("has broken no policy", () => {
    expect([...new Set(console.faults)]).toEqual([]);
  });
});

/** The upload of a snippet. The last module is the main one. */
function snippetForm(modules: Record<string, string>): FormData {
  const form = new FormData();
  form.set("metadata", JSON.stringify({ main_module: Object.keys(modules).at(-1) }));
  for (const [name, code] of Object.entries(modules))
    form.append("files", new File([code], name, { type: "application/javascript+module" }));
  return form;
}
