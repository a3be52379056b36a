import { setTimeout as delay } from "node:timers/promises";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserPath, openConsole, press, settled, type OpenConsole } from "./browser.ts";
import { scriptForm } from "./data.ts";
import { makeLong, openLong } from "./long-workflow.ts";
import { jumpsOf } from "./scroll.ts";

interface Focused {
  document: {
    activeElement: { tagName: string; textContent: string; getAttribute(name: string): string | null };
  };
}

/* Faults that a person met who used the console for the first time, with the screen only. */
describe.skipIf(browserPath === undefined)("the console at the first use, in a browser", () => {
  let console: OpenConsole;
  let account: string;
  let zone: string;
  beforeAll(async () => {
    console = await openConsole();
    account = console.platform.accountId;
    ({ id: zone } = await console.call<{ id: string }>("POST", "/zones", {
      name: "shop.example",
      account: { id: account },
      type: "full",
    }));
  });
  afterAll(async () => console[Symbol.asyncDispose]());

  const focused = async (page: Page): Promise<string> =>
    page.evaluate(() => {
      const { activeElement } = (globalThis as unknown as Focused).document;
      return activeElement.getAttribute("aria-label") ?? activeElement.textContent;
    });

  it("52: leads from a record to its author and the values before and after, beyond the first page of the audit log", async () => {
    const { id } = await console.call<{ id: string }>("POST", `/zones/${zone}/dns_records`, {
      type: "A",
      name: "api",
      content: "192.0.2.10",
    });
    await console.call("PATCH", `/zones/${zone}/dns_records/${id}`, { content: "203.0.113.66" });
    for (let turn = 0; turn < 110; turn++) await console.call("PATCH", `/zones/${zone}`, { paused: false });
    const page = await console.opened(`/audit?filter=203.0.113.66`);
    await page.getByRole("button", { name: "Change parts of a record" }).waitFor();
    await page.goto(page.url().replace(/audit.*/, `zones/shop.example/dns?record=${id}`));
    await page.getByRole("link", { name: "History" }).click();
    const edit = page.getByRole("row").filter({ hasText: "Change parts of a record" });
    expect(await edit.textContent()).toContain("owner@selvedge.localhost");
    await edit.getByRole("button").click();
    expect([
      await page.locator("del").first().textContent(),
      await page.locator("ins").first().textContent(),
    ]).toEqual(['"192.0.2.10"', '"203.0.113.66"']);
    await page.context().close();
  });

  it("lists the creation of a token among the person's own changes", async () => {
    const groups = await console.call<{ id: string; name: string }[]>(
      "GET",
      "/user/tokens/permission_groups",
    );
    await console.call("POST", "/user/tokens", {
      name: "of a person",
      policies: [
        {
          effect: "allow",
          permission_groups: [{ id: groups.find(({ name }) => name === "Zone Read")!.id }],
          resources: { [`com.cloudflare.api.account.zone.${zone}`]: "*" },
        },
      ],
    });
    const page = await console.opened("/audit?filter=of+a+person");
    await page.getByLabel("Log", { exact: true }).selectOption("By you, everywhere");
    const row = page.getByRole("row").filter({ hasText: "of a person" });
    expect(await row.textContent()).toContain("token");
    await row.getByRole("button").click();
    await page.getByRole("dialog").getByText('"of a person"').waitFor();
    await page.context().close();
  });

  it("changes the tabs of a zone by keyboard, and lists them under ?", async () => {
    const page = await console.opened("/zones/shop.example");
    await page.keyboard.press("z");
    await page.keyboard.press("d");
    await page.getByRole("heading", { name: "DNS records" }).waitFor();
    await page.keyboard.press("?");
    expect(await page.getByRole("dialog", { name: "Keyboard shortcuts" }).textContent()).toContain("z d");
    await page.context().close();
  });

  it("imports a zone file by keyboard: the focus stays in the dialog, priorities are shown", async () => {
    const page = await console.opened("/zones/shop.example/dns");
    await page.keyboard.press("i");
    await page.getByLabel("Zone file").fill("@ 300 IN MX 10 mail.shop.example.\n");
    await press(page, "Compare");
    await page.getByText("@ MX 10 mail.shop.example, 5 min").waitFor();
    expect(await focused(page)).toBe("Differences");
    await page.keyboard.press("Escape");
    const add = page.getByRole("button", { name: "Add a record" });
    await add.press("Enter");
    await page.getByLabel("IPv4 address").fill("192.0.2.77");
    await page.keyboard.press("Escape");
    await press(page, "Go on editing");
    expect(await page.getByLabel("IPv4 address").inputValue()).toBe("192.0.2.77");
    await page.keyboard.press("Escape");
    await press(page, "Discard");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await focused(page)).toBe("Add a record");
    await page.context().close();
  });

  it("gives the focus back to the opener of a dialog, or to the nearest thing that is there", async () => {
    const page = await console.opened("/images/settings");
    await page.getByRole("button", { name: "New variant" }).first().press("Enter");
    await page.keyboard.press("Escape");
    expect(await focused(page)).toBe("New variant");
    await page.keyboard.press("Enter");
    await page.getByLabel("Name").fill("thumb");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByRole("cell", { name: "thumb", exact: true }).waitFor();
    expect(await focused(page)).toBe("New variant");
    const remove = page.getByRole("row").filter({ hasText: "thumb" }).getByRole("button").last();
    await remove.press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("cell", { name: "thumb", exact: true }).waitFor({ state: "detached" });
    expect(
      await page.evaluate(() => (globalThis as unknown as Focused).document.activeElement.tagName),
    ).not.toBe("BODY");
    // Its messages go with the screen.
    await page.locator(".toast").first().waitFor();
    await page.clock.setSystemTime(Date.now() + 2000);
    await page.keyboard.press("g");
    await page.keyboard.press("e");
    await page.getByRole("heading", { name: "Settings", exact: true }).waitFor();
    expect(await page.locator(".toast").count()).toBe(0);
    await page.getByRole("button", { name: "owner@selvedge.localhost" }).click();
    await page.getByRole("group", { name: "Theme" }).getByRole("menuitemradio", { name: "Dark" }).waitFor();
    await page.context().close();
  });

  it("leads into a table with j, and finds screens by several words and by their subject", async () => {
    const page = await console.opened("/zones");
    await page.keyboard.press("j");
    expect(await focused(page)).toBe("row 1 of 1");
    // Of a table, Tab reaches the current row and what is in it.
    const stops = page.getByRole("grid").locator("a, button").and(page.locator(":not([tabindex='-1'])"));
    expect(await stops.count()).toBe(1);
    await page.keyboard.press("Enter");
    await page.getByRole("navigation", { name: "Screens of shop.example" }).waitFor();
    for (const [text, screen] of [
      ["shop dns", "DNS records"],
      ["zone file", "DNS records"],
      ["redirect", "Snippets"],
    ] as const) {
      await page.keyboard.press("Control+k");
      await page.getByRole("dialog").getByRole("combobox").fill(text);
      await page.getByRole("option", { name: screen }).first().waitFor();
      await page.keyboard.press("Escape");
    }
    await console.call(
      "PUT",
      `/accounts/${account}/workers/scripts/dispatch-zones`,
      scriptForm("export default { fetch: () => new Response() };"),
    );
    await console.call("POST", `/zones/${zone}/dns_records`, {
      type: "TXT",
      name: "vpn.labor",
      content: '"x"',
    });
    const first = page.getByRole("dialog").getByRole("option").first();
    for (const [text, expected] of [
      ["dispatch", "Dispatchscreen"],
      ["zones", "Zonesscreen"],
      ["dispatch-z", "dispatch-zonesscript"],
      ["dns", "DNS recordsshop.example"],
      ["vpn.labor", "vpn.labor.shop.exampleTXT record"],
      ["add zone", "Add a zoneZones"],
    ] as const) {
      await page.keyboard.press("Control+k");
      await page.getByRole("dialog").getByRole("combobox").fill(text);
      await first.filter({ hasText: expected }).waitFor();
      // More options follow from the server, and none of them goes before it.
      await page.getByText("Searching").waitFor({ state: "detached" });
      expect(await first.textContent()).toBe(expected);
      if (text !== "add zone") await page.keyboard.press("Escape");
    }
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Add a zone" }).waitFor();
    await page.keyboard.press("Escape");
    // Enter waits for what the server finds.
    await page.keyboard.press("Control+k");
    await page.keyboard.type("dispatch-zones");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "dispatch-zones" }).waitFor();
    await page.context().close();
  });

  it("asks for the zone of a token for one zone's DNS, and lists it with the zone", async () => {
    const page = await console.opened("/tokens");
    await page.keyboard.press("n");
    await page.getByRole("option", { name: "shop.example" }).waitFor({ state: "attached" });
    await page.keyboard.type("dns of the shop"); // the name has the focus
    const button = page.getByRole("dialog").getByRole("button", { name: "Create the token" });
    expect(await button.getAttribute("aria-disabled")).toBe("true");
    await page.getByLabel("Zone", { exact: true }).selectOption("shop.example");
    await button.click();
    await page.getByRole("dialog", { name: "The token's value" }).waitFor();
    // Another Escape goes back to the value, which is not lost before it is copied.
    for (let turn = 0; turn < 2; turn++) await page.keyboard.press("Escape");
    await press(page, "Copy the token");
    await page.getByRole("button", { name: "Copied" }).waitFor();
    await press(page, "Done");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await focused(page)).not.toContain("Skip to the content");
    const row = page.getByRole("row").filter({ hasText: "dns of the shop" });
    expect(await row.textContent()).toContain("shop.example");
    await page.context().close();
  });

  it("replays dead letters into the queue in which they failed", async () => {
    const queues = `/accounts/${account}/queues`;
    const queueOf = async (queue_name: string): Promise<string> =>
      (await console.call<{ queue_id: string }>("POST", queues, { queue_name })).queue_id;
    const [jobs, dead] = [await queueOf("jobs"), await queueOf("jobs-dead")];
    await console.call("POST", `${queues}/${jobs}/consumers`, {
      type: "http_pull",
      dead_letter_queue: "jobs-dead",
    });
    const bodies = Array.from({ length: 105 }, (_, order) => ({ order }));
    for (const messages of [bodies.slice(0, 100), bodies.slice(100)])
      await console.call("POST", `${queues}/${dead}/messages/batch`, {
        messages: messages.map((body) => ({ body })),
      });
    // Together they have fewer characters than a batch may have bytes, and more bytes.
    const large = { content_type: "text", body: "語".repeat(32_000) };
    for (let at = 0; at < 3; at++)
      await console.call("POST", `${queues}/${dead}/messages/batch`, { messages: [large] });
    const page = await console.opened("/queues");
    await page.getByRole("row").filter({ hasText: "jobs-dead" }).filter({ hasText: "108" }).waitFor();
    await page.getByRole("link", { name: "jobs-dead" }).click();
    await press(page, "Replay into jobs");
    await press(page, "Replay 108 messages");
    await page.getByText("108 messages went back to jobs at").waitFor();
    await page.getByText("until a client pulls them").waitFor();
    await page.getByText("Messages wait until a consumer is added, and are kept").waitFor();
    await press(page, "Peek");
    await page.getByText("No message waits.").waitFor();
    const backlog = async (id: string): Promise<number> =>
      (await console.call<{ backlog_count: number }>("GET", `${queues}/${id}/metrics`)).backlog_count;
    expect([await backlog(dead), await backlog(jobs)]).toEqual([0, 108]);
    await console.call("POST", `${queues}/${dead}/messages`, { body: { order: "failed again" } });
    await page.getByText("Since then 1 message came here").waitFor();
    await page.getByText('"failed again"').waitFor(); // the peeked list follows
    const { messages } = await console.call<{ messages: { body: string }[] }>(
      "POST",
      `${queues}/${jobs}/messages/peek`,
      { batch_size: 1 },
    );
    expect(JSON.parse(atob(messages[0]!.body))).toEqual({ order: 0 });
    await page.context().close();
  });

  it("says that a snippet waits for the one before it, and leads from the trace to its rule", async () => {
    await console.call("POST", `/zones/${zone}/dns_records`, {
      type: "A",
      name: "www",
      content: "192.0.2.1",
      proxied: true,
    });
    for (const name of ["campaign", "redirect"]) {
      const form = new FormData();
      form.set("metadata", JSON.stringify({ main_module: "snippet.js" }));
      const source = "export default { fetch: () => new Response() };";
      form.set("files", new File([source], "snippet.js", { type: "application/javascript+module" }));
      await console.call("PUT", `/zones/${zone}/snippets/${name}`, form);
    }
    await console.call("PUT", `/zones/${zone}/snippets/snippet_rules`, {
      rules: ["campaign", "redirect"].map((snippet_name) => ({
        snippet_name,
        description: `The ${snippet_name}`,
        expression: 'starts_with(http.request.uri.path, "/sale")',
        enabled: true,
      })),
    });
    const page = await console.opened("/zones/shop.example/trace?url=http%3A%2F%2Fwww.shop.example%2Fsale");
    const second = page.getByRole("listitem").filter({ hasText: "The redirect" });
    expect(await second.textContent()).toContain("if the code passes it on");
    await second.getByRole("link", { name: "Edit this rule" }).click();
    await page.getByRole("dialog", { name: "Edit the rule" }).waitFor();
    expect(await page.getByLabel("Description").inputValue()).toBe("The redirect");
    await page.keyboard.press("Escape");
    await press(page, "Actions of rule 2");
    await page.getByRole("menuitem", { name: "Move up" }).click();
    await page.getByText("The order was changed").waitFor();
    const rules = await console.call<{ snippet_name: string }[]>(
      "GET",
      `/zones/${zone}/snippets/snippet_rules`,
    );
    expect(rules.map(({ snippet_name }) => snippet_name)).toEqual(["redirect", "campaign"]);
    await page.context().close();
  });

  it("shows new instances in the list of workflows without a reload, on a slow line too", async () => {
    const code = `import { WorkflowEntrypoint } from "cloudflare:workers";
      export class Fails extends WorkflowEntrypoint { async run(_, step) { await step.do("flaky", { retries: { limit: 0, delay: 1 } }, () => { throw new Error("no"); }); } }
      export default { fetch: () => new Response() };`;
    const at = `/accounts/${account}`;
    await console.call("PUT", `${at}/workers/scripts/fails`, scriptForm(code));
    await console.call("PUT", `${at}/workflows/fails`, { script_name: "fails", class_name: "Fails" });
    const page = await console.opened("/workflows");
    const errored = page.getByRole("row", { name: "row 1 of 1" }).getByRole("gridcell").nth(3);
    expect(await errored.textContent()).toBe("0");
    // Slower than the list is read again.
    await page.route("**/workflows?*", async (route) => delay(3200).then(async () => route.continue()));
    await console.call("POST", `${at}/workflows/fails/instances?wait=30`, {});
    await errored.filter({ hasText: "1" }).waitFor();
    const [{ id }] = await console.call<[{ id: string }]>("GET", `${at}/workflows/fails/instances`);
    await page.goto(page.url().replace(/workflows.*/, `workflows/fails/${id}`));
    await settled(page);
    await page.keyboard.press("r");
    const restart = page.getByRole("dialog", { name: `Restart ${id}` });
    expect(await restart.getByLabel("From").textContent()).toBe("the first stepflaky-1 (failed)");
    await restart.getByLabel("From").selectOption("flaky-1 (failed)");
    await restart.getByText("This step and later ones are forgotten").waitFor();
    await page.keyboard.press("Escape");
    await press(page, "Go to the error");
    await press(page, "Restart from here");
    await page.getByRole("dialog", { name: "Restart from flaky-1" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "flaky-1", exact: true }).waitFor();
    await page.context().close();
  });

  it("39: shows a workflow of 1,200 steps with few rows, and finds one by its name", async () => {
    await makeLong(console);
    const page = await openLong(console, 1200);
    await page.getByRole("row", { name: "row 1 of 1,202", exact: true }).waitFor();
    expect(await jumpsOf(page, { frames: 30, stepPx: 1000 })).toEqual([]);
    await page.keyboard.press("/");
    await page.keyboard.type("PAGE 1193");
    await page.getByText("1 of 1,202 steps").waitFor();
    await page.getByRole("row", { name: "row 1 of 1" }).press("Enter");
    await page.getByRole("dialog", { name: "page 1193-1" }).waitFor();
    expect(page.url()).toContain("find=PAGE+1193");
    await page.context().close();
  });

  it("37: folds a week of sleep, so that the steps around it can be seen", async () => {
    const instances = `/accounts/${account}/workflows/long/instances`;
    await console.call("POST", instances, { id: "week", params: { steps: 0, sleep: "7 days" } });
    const is = async (status: string): Promise<void> =>
      expect
        .poll(async () => (await console.call<{ status: string }>("GET", `${instances}/week`)).status)
        .toBe(status);
    await is("waiting");
    // This is the last use of the session: it ends, too.
    await console.platform.clock.advance("7 days");
    await is("complete");
    const token = await console.platform.tokenWith(["Workers Scripts Read"]);
    const page = await console.open(`/${account}/workflows/long/week`, { token });
    const bars = page.getByRole("grid", { name: "Timeline" }).getByRole("img");
    await bars.nth(2).waitFor();
    expect(await page.locator(".ruler").textContent()).toContain("‖ 7 d ‖");
    await page.getByText("a time without work, drawn shorter than it was").waitFor();
    const widthOf = async (of: Locator): Promise<number> => (await of.boundingBox())!.width;
    // A hundredth of a second beside a week.
    for (const bar of [bars.nth(0), bars.nth(2)])
      expect(await widthOf(bar.locator(".done"))).toBeGreaterThan((await widthOf(bar)) / 50);
    await page.context().close();
  });

  it("has broken no policy", () => {
    expect([...new Set(console.faults)]).toEqual([]);
  });
});
