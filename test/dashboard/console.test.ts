import { execFile } from "node:child_process";
import { promisify } from "node:util";
import Cloudflare from "cloudflare";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
