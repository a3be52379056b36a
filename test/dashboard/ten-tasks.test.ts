import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rank } from "../../dashboard/core/rank.ts";
import { deletionOf, updateOf } from "../../dashboard/screens/d1/row.ts";
import { scaleOf } from "../../dashboard/screens/workflows/scale.ts";
import { browserPath, openConsole, press, settled, type OpenConsole } from "./browser.ts";
import { scriptForm } from "./data.ts";

/* Faults that led a person astray who did ten tasks with the screen only. */

const column = { table: "t", type: "TEXT", isNotNull: false, byDefault: null, isKey: false };

it("finds names by the letters that begin their words, and by no scattered letters", () => {
  const fits = ["orul", "orirules", "or ru"].map((text) => rank(text, "Origin rules"));
  expect(fits).not.toContain(undefined);
  expect([rank("purge", "Logpush of the zone garden.example"), rank("upload", "Origin rules")]).toEqual([
    undefined,
    undefined,
  ]);
});

it("folds a start that was short beside two waits, but is most of what is left", () => {
  const scale = scaleOf(
    [
      { kind: "done", from: 190, to: 191 },
      { kind: "failed", from: 192, to: 193 },
      { kind: "failed", from: 1193, to: 1194 },
      { kind: "failed", from: 2194, to: 2195 },
    ],
    0,
    2195,
  );
  expect(scale.folds.map(({ ms }) => ms)).toEqual([190, 1000, 1000]);
  expect(scale.at(190)).toBeCloseTo(0.08);
  // Work of no time needs the short wait beside it, or all of it would be at one place.
  const points = [200, 200, 1200].map((ms) => ({ kind: "done" as const, from: ms, to: ms }));
  expect(scaleOf(points, 0, 1200).folds.map(({ ms }) => ms)).toEqual([1000]);
});

it("changes only the columns with another value, of the row as it was seen", () => {
  const columns = ["id", "name", "count"].map((name) => ({ ...column, name, isKey: name === "id" }));
  const row = { table: 'a"b', columns, values: [1, "Ada", 7] };
  expect(updateOf(row, ["1", "Ada", "7"])).toBeUndefined();
  expect(updateOf(row, ["1", undefined, "8"])).toEqual({
    sql: 'update "a""b" set "name" = ?, "count" = ? where "id" is ? and "name" is ? and "count" is ?;',
    params: [null, 8, 1, "Ada", 7],
  });
  expect(deletionOf(row)).toEqual({ sql: 'delete from "a""b" where "id" is ?;', params: [1] });
});

describe.skipIf(browserPath === undefined)("ten tasks, in a browser", () => {
  let console: OpenConsole;
  let account: string;
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> =>
    console.call<T>(method, path, body);
  beforeAll(async () => {
    console = await openConsole();
    account = console.platform.accountId;
    await call("POST", "/zones", { name: "garden.example", account: { id: account } });
  });
  afterAll(async () => console[Symbol.asyncDispose]());

  const close = async (page: Page): Promise<void> => page.context().close();

  it("signs in by keyboard without a link over the name of the console", async () => {
    const page = await console.open("/", { isSignedIn: false });
    await page.getByLabel("API token").fill(console.platform.token);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await page.evaluate("document.activeElement.id")).toBe("main");
    await close(page);
  });

  it("shows the refused line of a zone file, and selects it in the file", async () => {
    const page = await console.opened("/zones/garden.example/dns");
    await page.keyboard.press("i");
    await page.getByLabel("Zone file").fill("www IN A 192.0.2.1\nbad IN A 999.1.1.1\n");
    await press(page, "Compare");
    const refused = page.getByRole("row").filter({ hasText: "refused" });
    expect(await refused.textContent()).toContain("bad IN A 999.1.1.1");
    await page.getByText("Correct the refused lines first.").waitFor();
    await press(page, "Back to the file");
    const selected = "const f = document.activeElement; f.value.slice(f.selectionStart, f.selectionEnd)";
    expect(await page.evaluate(selected)).toBe("bad IN A 999.1.1.1");
    await close(page);
  });

  it("says once what a rule without a name does", async () => {
    const { id } = (await call<{ id: string }[]>("GET", "/zones?name=garden.example"))[0]!;
    await call("PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
      rules: [{ action: "route", expression: "true", action_parameters: { origin: { port: 3000 } } }],
    });
    const page = await console.opened("/zones/garden.example/trace");
    await page.getByRole("link", { name: "Edit this rule" }).waitFor();
    expect(await page.getByText("origin port 3000").count()).toBe(1);
    await close(page);
  });

  it("names the address of a script, switches it off and on, and says who uses the script before it is deleted", async () => {
    await call("PUT", `/accounts/${account}/workers/scripts/greeter`, scriptForm(greeter));
    const { queue_id: queue } = await call<{ queue_id: string }>("POST", `/accounts/${account}/queues`, {
      queue_name: "jobs",
    });
    await call("POST", `/accounts/${account}/queues/${queue}/consumers`, {
      type: "worker",
      script_name: "greeter",
    });
    const page = await console.opened("/scripts/greeter?tab=settings");
    const url = await page.getByRole("link", { name: /^http:\/\/greeter\./ }).getAttribute("href");
    expect(await (await console.platform.fetch(url!)).text()).toBe("hello");
    const address = page.getByRole("switch", { name: "Address of the account's subdomain" });
    await address.click();
    await page.getByText("No address of its own").waitFor();
    expect((await console.platform.fetch(url!)).status).toBe(404);
    await address.click();
    await page.getByRole("link", { name: url! }).waitFor();
    await press(page, "More");
    await page.getByRole("menuitem", { name: "Delete the script" }).click();
    await page.getByText("Still in use by: the queue jobs.").waitFor();
    await close(page);
  });

  it("adds, changes and removes the consumer of a queue", async () => {
    const { queue_id: queue } = await call<{ queue_id: string }>("POST", `/accounts/${account}/queues`, {
      queue_name: "mails",
    });
    const page = await console.opened(`/queues/${queue}`);
    await press(page, "Add a consumer");
    await page.getByLabel("Script").selectOption("greeter");
    await page.getByLabel("Messages that fail go to").selectOption("jobs");
    await page.getByLabel("Retries").fill("7");
    await press(page, "Add the consumer");
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "greeter" }) });
    await row.getByRole("link", { name: "jobs" }).waitFor();
    await press(page, "Actions of the consumer");
    await page.getByRole("menuitem", { name: "Edit" }).click();
    await page.getByLabel("Batch size").fill("101");
    await press(page, "Save");
    await page.locator(".error").filter({ hasText: "100" }).waitFor();
    await page.getByLabel("Batch size").fill("20");
    await press(page, "Save");
    await page.getByText("The consumer was saved").waitFor();
    const [consumer] = await call<{ settings: object; dead_letter_queue: string }[]>(
      "GET",
      `/accounts/${account}/queues/${queue}/consumers`,
    );
    expect(consumer).toMatchObject({
      dead_letter_queue: "jobs",
      settings: { batch_size: 20, max_retries: 7 },
    });
    await press(page, "Actions of the consumer");
    await page.getByRole("menuitem", { name: "Remove" }).click();
    await press(page, "Remove");
    await page.getByRole("button", { name: "Add a consumer" }).waitFor();
    await close(page);
  });

  it("shows the rows of a table with one press, and changes and deletes one of them", async () => {
    const database = `/accounts/${account}/d1/database`;
    await call("POST", database, { name: "guests" });
    const query = async (sql: string): Promise<unknown> => {
      const [{ results }] = await call<[{ results: unknown }]>("POST", `${database}/guests/query`, { sql });
      return results;
    };
    await query("create table t (id integer primary key, name text not null, seat integer, note text)");
    await query("insert into t values (1, 'Ada', 4, 'window'), (2, 'Grace', 5, null)");
    const page = await console.opened("/d1/guests");
    await press(page, "t");
    await page.getByText("Ada", { exact: true }).click();
    await page.getByLabel("seat", { exact: true }).fill("12");
    await page.getByRole("switch", { name: "NULL for note" }).click();
    await press(page, "Save");
    await page.getByText("The row was changed").waitFor();
    const all = "select *, typeof(seat) as type from t order by id";
    expect(await query(all)).toEqual([
      { id: 1, name: "Ada", seat: 12, note: null, type: "integer" },
      { id: 2, name: "Grace", seat: 5, note: null, type: "integer" },
    ]);
    // Another person changes the row that is open.
    await page.getByText("Grace", { exact: true }).click();
    await page.getByLabel("name", { exact: true }).fill("Hopper");
    await query("update t set name = 'Admiral' where id = 2");
    await press(page, "Save");
    await page.getByText("The row has changed meanwhile").waitFor();
    await press(page, "Cancel");
    await press(page, "t");
    await page.getByText("Admiral", { exact: true }).click();
    await press(page, "Delete the row");
    await press(page, "Delete");
    await page.getByText("The row was deleted").waitFor();
    expect(await query("select id from t")).toEqual([{ id: 1 }]);
    await close(page);
  });

  it("restarts, terminates and deletes several instances of a workflow at once", async () => {
    await call("PUT", `/accounts/${account}/workers/scripts/orders`, scriptForm(order));
    await call("PUT", `/accounts/${account}/workflows/orders`, {
      script_name: "orders",
      class_name: "Order",
    });
    const instances = `/accounts/${account}/workflows/orders/instances`;
    for (const id of ["first", "second"])
      await call("POST", `${instances}?wait=30`, { id, params: { isBroken: true } });
    const page = await console.opened("/workflows/orders");
    await page.getByRole("checkbox", { name: "Select all rows" }).check();
    await page.getByText("2 instances", { exact: true }).waitFor();
    await press(page, "Restart");
    await page.getByRole("dialog").getByRole("button", { name: "Restart" }).click();
    await page.getByText("2 instances were restarted").waitFor();
    for (const id of ["first", "second"])
      expect(await call("GET", `${instances}/${id}/status?wait=30`)).toMatchObject({ status: "errored" });
    await call("POST", instances, { id: "third", params: {} });
    await press(page, "Read again");
    await page.getByText("third").waitFor();
    await page.getByRole("checkbox", { name: "Select row 1" }).check();
    await press(page, "Terminate");
    await page.getByRole("dialog").getByRole("button", { name: "Terminate" }).click();
    await page.getByText("1 instance was terminated").waitFor();
    expect(await call("GET", `${instances}/third`)).toMatchObject({ status: "terminated" });
    await page.getByRole("checkbox", { name: "Select all rows" }).check();
    await press(page, "Delete");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("No instance yet").waitFor();
    expect(await call("GET", instances)).toEqual([]);
    await close(page);
  });

  it("deletes the chosen keys of a namespace, and no others", async () => {
    const namespaces = `/accounts/${account}/storage/kv/namespaces`;
    const { id } = await call<{ id: string }>("POST", namespaces, { title: "settings" });
    const pairs = ["a", "b", "c"].map((key) => ({ key, value: key }));
    await call("PUT", `${namespaces}/${id}/bulk`, pairs);
    const page = await console.opened(`/kv/${id}`);
    await page.getByRole("checkbox", { name: "Select row 1" }).check();
    await page.getByRole("checkbox", { name: "Select row 3" }).check();
    await press(page, "Delete");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("The keys were deleted").waitFor();
    expect(await call("GET", `${namespaces}/${id}/keys`)).toEqual([{ name: "b" }]);
    await close(page);
  });

  it("says in the search that a product is not there", async () => {
    const page = await console.opened("");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("R2");
    await page.getByText("This version has no R2.").waitFor();
    await page.getByRole("combobox").fill("purge");
    await page.getByText("This version has no cache").waitFor();
    await page.getByRole("option", { name: "Queues screen" }).waitFor();
    expect(await page.getByRole("option", { name: /Logpush/ }).count()).toBe(0);
    await close(page);
  });

  it("changes the subdomain of the account, and with it the addresses of scripts", async () => {
    const page = await console.opened("/settings");
    await page.getByLabel("Subdomain").fill("garden");
    await page.getByRole("button", { name: "Save" }).nth(1).click();
    await page.getByText("The subdomain was saved").waitFor();
    await page.goto(page.url().replace("settings", "scripts/greeter"));
    await settled(page);
    await page.getByRole("link", { name: /^http:\/\/greeter\.garden\./ }).waitFor();
    await close(page);
  });

  it("has broken no policy", () => {
    expect(console.faults).toEqual([]);
  });
});

const order = `import { WorkflowEntrypoint } from "cloudflare:workers";
export class Order extends WorkflowEntrypoint {
  async run({ payload }, step) {
    if (payload.isBroken) throw new Error("it is broken");
    await step.sleep("wait", "1 hour");
  }
}
export default { fetch: () => new Response() };`;

const greeter = 'export default { fetch: () => new Response("hello"), queue() {} };';
