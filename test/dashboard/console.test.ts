import { execFile } from "node:child_process";
import { Resolver } from "node:dns/promises";
import { promisify } from "node:util";
import Cloudflare from "cloudflare";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jumpsOf } from "./scroll.ts";
import { browserPath, openConsole, press, settled, type OpenConsole } from "./browser.ts";
import { makeData } from "./data.ts";
import { runTypeScript } from "./run-typescript.ts";

interface Created {
  id: string;
  value: string;
}

/* The console in a browser, against a whole platform. The numbers are those of the acceptance cases of the design. */
describe.skipIf(browserPath === undefined)("the console, in a browser", () => {
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
  const text = async (page: Page, selector: string): Promise<string> =>
    (await page.locator(selector).first().textContent()) ?? "";
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
  /** A token with groups of permissions on the zone. */
  const make = async (...names: string[]): Promise<Created> => {
    const groups = await console.call<{ id: string; name: string }[]>(
      "GET",
      "/user/tokens/permission_groups",
    );
    return console.call<Created>("POST", "/user/tokens", {
      name: names.join(", "),
      policies: [
        {
          effect: "allow",
          resources: { [`com.cloudflare.api.account.zone.${zone.id}`]: "*" },
          permission_groups: groups.filter(({ name }) => names.includes(name)),
        },
      ],
    });
  };

  it("1, 3, 4: asks for a token, refuses a wrong one at its field, and keeps the right one from scripts", async () => {
    const page = await opened("/", { isSignedIn: false });
    const field = page.getByLabel("API token");
    await field.fill("wrong-token");
    await field.press("Enter");
    await page.getByText("Invalid API Token").waitFor();
    expect(await field.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
    await field.fill(console.platform.token);
    await field.press("Enter");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.reload();
    const second = await page.context().newPage();
    await second.goto(page.url());
    for (const each of [page, second]) await each.getByRole("heading", { name: "Overview" }).waitFor();
    expect(
      await page.evaluate("[document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage)]"),
    ).toEqual(["", "{}", "{}"]);
    await page.context().close();
  });

  it("5: a deleted token leads to sign-in, at the same address", async () => {
    const token = await make("Zone Read", "DNS Read");
    const page = await opened(dns(), { token: token.value });
    await console.call("DELETE", `/user/tokens/${token.id}`);
    await page.getByLabel("Filter records").fill("mail");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.getByLabel("API token").fill(console.platform.token);
    await page.keyboard.press("Enter");
    await page.getByRole("row", { name: "row 1 of 2" }).waitFor();
    expect(page.url()).toContain(`${dns()}?search=mail`);
    await page.context().close();
  });

  it("8, 9, 10: a token that may only read the DNS of one zone sees only that, and the controls say what they need", async () => {
    const { value } = await make("Zone Read", "DNS Read");
    const page = await opened(dns(), { token: value });
    const add = page.getByRole("button", { name: "Add a record" });
    expect(await add.getAttribute("aria-disabled")).toBe("true");
    expect(await page.getByText("needs DNS: Edit").count()).toBeGreaterThan(0);
    expect(
      await page.getByRole("navigation", { name: "Products" }).getByRole("link").allTextContents(),
    ).toEqual(["Overview", "Zones"]);
    await page.goto(page.url().replace("/dns", "/tls"));
    await page.getByText("This screen needs SSL and Certificates: Read").waitFor();
    await page.context().close();
  });

  it("12: the theme changes at once, and stays", async () => {
    const page = await opened(`/${account}/settings`);
    const ground = (): Promise<unknown> =>
      page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
    const before = await ground();
    await page.getByLabel("Theme").selectOption("dark");
    const dark = await ground();
    await page.reload();
    expect([dark === before, await ground()]).toEqual([false, dark]);
    await page.context().close();
  });

  it("15, 16, 17: goes to a zone's records by keyboard or by an id, and single letters can be switched off", async () => {
    const page = await opened(`/${account}`);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("sho");
    await page.getByRole("option", { name: "shop.example zone" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "DNS records" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("z");
    await page.getByRole("heading", { name: "Zones" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill(zone.id);
    await page.getByRole("option", { name: "shop.example zone" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("navigation", { name: "Screens of shop.example" }).waitFor();
    await page.evaluate('localStorage.setItem("selvedge-keys", "off")');
    await page.reload();
    await settled(page);
    await page.keyboard.press("?");
    await page.keyboard.press("n");
    expect(await page.getByRole("dialog").count()).toBe(0);
    await page.context().close();
  });

  it("18, 21, 22: adds a zone and records by keyboard, and shows a refusal at its field", async () => {
    const page = await opened(`/${account}/zones`);
    await page.keyboard.press("n");
    await page.locator("dialog input:focus").waitFor();
    await page.keyboard.type("keyboard.example");
    await page.keyboard.press("Control+Enter");
    await page.getByText("ns1.selvedge.localhost").first().waitFor();
    await page.goto(`${page.url()}/dns?record=new`);
    await page.getByLabel("Type", { exact: true }).last().selectOption("MX");
    await page.getByLabel("Name", { exact: true }).fill("not a name!");
    await page.getByLabel("Value", { exact: true }).fill("not a host!");
    await page.keyboard.press("Control+Enter");
    const field = page.getByLabel("Value", { exact: true });
    await page.locator(".field.wrong").first().waitFor();
    const refusals = page.getByRole("dialog").locator(".error, .form-failure");
    expect((await refusals.allTextContents()).length).toBe(2);
    expect((await refusals.allTextContents()).join()).not.toContain("but received");
    await page.getByLabel("Name", { exact: true }).fill("@");
    expect(await field.getAttribute("aria-invalid")).toBe("true");
    // An error is below the form while its field is not there.
    const type = page.getByLabel("Type", { exact: true }).last();
    await type.selectOption("CAA");
    expect(await page.locator(".form-failure").count()).toBe(1);
    await type.selectOption("MX");
    expect(await page.locator(".form-failure").count()).toBe(0);
    await field.fill("mail.keyboard.example");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("row", { name: "row 1 of 1" }).waitFor();
    expect(await text(page, "[data-row='0']")).toContain("10 mail.keyboard.example");
    await page.context().close();
  });

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
    await page.getByText("1 added, 0 changed, 0 the same, 0 lines refused, 1 skipped").waitFor();
    await page.getByRole("row", { name: "1 skipped the zone has its own name servers" }).waitFor();
    const added = async (): Promise<number> =>
      (await console.call<unknown[]>("GET", `/zones/${zone.id}/dns_records?name=new.shop.example`)).length;
    expect(await added()).toBe(0);
    await apply.click();
    await page.getByText("The zone file was imported").waitFor();
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
    await page.getByText("12 added, 3 changed, 9,985 the same, 0 lines refused, 0 skipped").waitFor();
    const rows = page.getByRole("region", { name: "Differences" }).locator("tbody").getByRole("row");
    expect(await rows.count()).toBe(15);
    expect(await rows.first().locator("del, ins").allTextContents()).toEqual([
      "host-9985 A 192.0.2.1, 5 min",
      "host-9985 A 192.0.2.1, 600 s",
    ]);
    expect(await records()).toEqual(before);
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("The zone file was imported").waitFor();
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

  it("52: the audit log says which change was made, by whom", async () => {
    const page = await opened(`/${account}/audit`);
    expect(await page.getByLabel("Reads").inputValue()).toBe("without");
    const rows = page.locator("td .link");
    const all = await rows.count();
    await page.getByLabel("Filter changes").fill("magazin.example create");
    await expect.poll(() => rows.count()).toBeLessThan(all);
    await rows.first().click();
    await page.getByRole("dialog").getByText("/client/v4").waitFor();
    await page.context().close();
  });

  it("23: an edit of one rule leaves another person's rules, and says when the rule itself was changed", async () => {
    const entrypoint = `/zones/${zone.id}/rulesets/phases/http_request_origin/entrypoint`;
    interface Ruleset {
      id: string;
      rules: { id: string; description: string; expression: string; action_parameters: object }[];
    }
    const { id, rules } = await console.call<Ruleset>("GET", entrypoint);
    const [shop] = rules;
    const page = await opened(`/${account}/zones/${zone.name}/rules?rule=${shop!.id}`);
    await page.getByLabel("Port").fill("8444");
    const route = { action: "route", action_parameters: { origin: { port: 81 } } };
    const theirs = { ...route, expression: 'http.host eq "b.example"', description: "Theirs" };
    const { rules: now } = await console.call<Ruleset>(
      "POST",
      `/zones/${zone.id}/rulesets/${id}/rules`,
      theirs,
    );
    const change = { ...route, expression: 'http.host eq "c.example"', description: shop!.description };
    await console.call("PATCH", `/zones/${zone.id}/rulesets/${id}/rules/${shop!.id}`, change);
    await page.getByText("This rule was changed meanwhile").waitFor();
    await page.getByRole("button", { name: "Keep mine" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The rule was saved").waitFor();
    const saved = await console.call<Ruleset>("GET", entrypoint);
    expect(saved.rules.map(({ description }) => description)).toEqual(
      now.map(({ description }) => description),
    );
    expect(saved.rules[0]).toMatchObject({
      expression: shop!.expression,
      action_parameters: { origin: { port: 8444 } },
    });
    await console.call("DELETE", `/zones/${zone.id}/rulesets/${id}/rules/${now.at(-1)!.id}`);
    await page.context().close();
  });

  it("30, 32: shows the place of a fault in an expression, and moves a rule by keyboard and by dragging it", async () => {
    const page = await opened(`/${account}/zones/${zone.name}/rules?rule=new`);
    expect(await page.locator(".about").textContent()).toContain("snippets");
    await page.getByLabel("When requests match").fill("http.host eq www.shop.example");
    await page.getByText('Did you mean "www.shop.example"?').waitFor();
    expect(await text(page, ".caret")).toContain("^");
    await page.getByLabel("When requests match").fill('http.hots eq "a"');
    await page.getByLabel("To the host").fill("a.example");
    const refused = page.waitForResponse(
      (answer) => answer.url().endsWith("/rules") && answer.request().method() === "POST",
    );
    await page.keyboard.press("Control+Enter");
    await refused;
    await page.getByRole("button", { name: "Save", exact: true }).waitFor();
    await page.getByText("Did you mean http.host?").waitFor();
    expect(await page.locator(".form-failure").count()).toBe(0);
    await page.keyboard.press("Escape");
    await press(page, "Discard");
    await page.locator("[data-rule='1']").focus();
    await page.keyboard.press("Alt+ArrowUp");
    const announced = page.getByRole("status");
    await announced.getByText("Rule 2 is now at place 1 of 2").waitFor();
    const saved = async (): Promise<string[]> => {
      const path = `/zones/${zone.id}/rulesets/phases/http_request_origin/entrypoint`;
      const { rules } = await console.call<{ rules: { description: string }[] }>("GET", path);
      return rules.map(({ description }) => description);
    };
    expect(await saved()).toEqual(["Visitors from abroad", "The API of the shop"]);
    const rule = (place: number) => page.locator(`[data-rule='${place}']`);
    await rule(0).filter({ hasText: "Visitors from abroad" }).dragTo(rule(1));
    await announced.getByText("Rule 1 is now at place 2 of 2").waitFor();
    expect(await saved()).toEqual(["The API of the shop", "Visitors from abroad"]);
    await page.context().close();
  });

  it("50, 51: makes a token from a template, shows its value once and never in code, and its code makes the same", async () => {
    const page = await opened(`/${account}/tokens`);
    await page.getByRole("button", { name: "Create a token" }).click();
    await page.getByLabel("Name").fill("DNS of the shop");
    await page.getByLabel("Zone", { exact: true }).selectOption(zone.id);
    await page.getByRole("button", { name: "As code" }).click();
    const curl = await text(page, ".code pre");
    expect(curl).toContain("$CLOUDFLARE_API_TOKEN");
    await page.getByRole("tab", { name: "TypeScript" }).click();
    const typescript = await text(page, ".code pre");
    await page.keyboard.press("Escape");
    const { env } = console.platform;
    await promisify(execFile)("bash", ["-c", curl], { env: { ...process.env, ...env } });
    await runTypeScript(typescript, Cloudflare, env);
    await page.getByRole("button", { name: "Create the token" }).click();
    const value = await text(page, ".copyable code");
    const answer = await fetch(`${console.platform.urls.api}/zones/${zone.id}/dns_records`, {
      headers: { authorization: `Bearer ${value}` },
    });
    expect(answer.status).toBe(200);
    const made = (await console.call<{ name: string; policies: object[] }[]>("GET", "/user/tokens")).filter(
      ({ name }) => name === "DNS of the shop",
    );
    const policies = made.map(({ policies }) => policies.map((policy) => ({ ...policy, id: "" })));
    expect(policies).toEqual([policies[0], policies[0], policies[0]]);
    await page.context().close();
  });

  it("11: has asked no other origin, and broken no policy", () => {
    expect([[...new Set(console.foreign)], [...new Set(console.faults)]]).toEqual([[], []]);
  });
});
