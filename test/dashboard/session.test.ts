import { globSync, rmSync } from "node:fs";
import { chromium, type Request } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { entries as allEntries } from "../../src/control/audit/store.ts";
import { browserPath } from "./browser.ts";
import { scriptForm } from "./data.ts";
import { startTestServer, ownerToken, type TestServer } from "../helpers/server.ts";

let server: TestServer;
let base: string;
beforeAll(async () => {
  server = await startTestServer();
  base = new URL(server.ready.dashboard).origin;
});
afterAll(() => server.close(0));

const own = { "x-selvedge-dashboard": "1" };
const signIn = async (body: object, headers: Record<string, string> = own): Promise<Response> =>
  fetch(`${base}/dashboard/session`, { method: "POST", headers, body: JSON.stringify(body) });
const cookieOf = (response: Response): string => response.headers.getSetCookie()[0]!.split(";")[0]!;
const read = async (path: string, headers: Record<string, string>): Promise<number> =>
  (await fetch(`${base}${path}`, { headers })).status;
const make = async (): Promise<{ id: string; value: string }> => {
  const groups = (await server.call("GET", "/user/tokens/permission_groups")).body.result as {
    id: string;
    name: string;
  }[];
  const zoneRead = groups.find(({ name }) => name === "Zone Read")!;
  const policies = [
    {
      effect: "allow",
      resources: { "com.cloudflare.api.account.zone.*": "*" },
      permission_groups: [{ id: zoneRead.id }],
    },
  ];
  return (await server.call("POST", "/user/tokens", { name: "console", policies })).body.result as never;
};

it("signs in with a token, and says what may be done", async () => {
  const { value } = await make();
  const answer = await signIn({ token: value });
  const [set] = answer.headers.getSetCookie();
  expect([answer.status, set]).toEqual([
    200,
    expect.stringMatching(/^__Host-selvedge=[\w-]{43}; HttpOnly; Secure; SameSite=Strict; Path=\/$/),
  ]);
  expect(await answer.text()).not.toContain(value);
  const session = await fetch(`${base}/dashboard/session`, { headers: { ...own, cookie: cookieOf(answer) } });
  expect(await session.json()).toMatchObject({
    result: { token: { name: "console" }, accounts: [{ can: [], can_on_all_zones: ["zone:read"] }] },
  });
});

it("a cookie counts only from the console itself", async () => {
  const cookie = cookieOf(await signIn({ token: ownerToken }));
  const zones = "/client/v4/zones";
  expect(await read(zones, { ...own, cookie })).toBe(200);
  expect(await read(zones, { cookie })).toBe(401);
  expect(await read(zones, { ...own, cookie, "sec-fetch-site": "same-site" })).toBe(401);
  expect(await read(zones, { ...own, cookie, "sec-fetch-site": "same-origin" })).toBe(200);
  expect(await read(zones, { ...own, cookie: `${cookie}x` })).toBe(401);
});

it("a session ends with its token, with a new value of it, and at sign-out", async () => {
  const zones = "/client/v4/zones";
  const sessionOf = async (value: string): Promise<string> => cookieOf(await signIn({ token: value }));
  const [deleted, rolled] = [await make(), await make()];
  const [first, second] = [await sessionOf(deleted.value), await sessionOf(rolled.value)];
  const third = await sessionOf(ownerToken);
  await server.call("DELETE", `/user/tokens/${deleted.id}`);
  await server.call("PUT", `/user/tokens/${rolled.id}/value`, {});
  await fetch(`${base}/dashboard/session`, { method: "DELETE", headers: { ...own, cookie: third } });
  for (const cookie of [first, second, third]) expect(await read(zones, { ...own, cookie })).toBe(401);
});

it("the start link signs in once", async () => {
  const known = await server.services.tokens.authenticate(ownerToken, "127.0.0.1");
  if (typeof known === "string") throw new Error(known);
  const code = server.services.startCodes.make(known.token);
  expect((await signIn({ code })).status).toBe(200);
  const again = await signIn({ code });
  expect([again.status, await again.text()]).toEqual([401, expect.stringContaining("has been used")]);
});

/** Shows the headers of its request. */
const echo = `export default {
  fetch: ({ headers }) => new Response(JSON.stringify([...headers]), { headers: { "content-type": "text/html" } }),
};`;

it.skipIf(browserPath === undefined)(
  "1, 2, 6, 7: a fresh clone shows the sign-in, its start link signs in once, and pages of the same host have no session",
  async () => {
    const account = server.ready.account_id;
    const put = { method: "PUT", headers: { authorization: `Bearer ${ownerToken}` }, body: scriptForm(echo) };
    await fetch(`${server.ready.api}/accounts/${account}/workers/scripts/echo`, put);
    const { body } = await server.call("GET", `/accounts/${account}/workers/subdomain`);
    // Cookies know no ports: a script at the edge has the console's host.
    const host = `echo.${(body.result as { subdomain: string }).subdomain}.workers.localhost`;
    const at = (url: string): string => `http://${host}:${new URL(url).port}`;
    // Nothing is built in a fresh clone.
    for (const file of globSync("node_modules/.cache/selvedge/console-*.json")) rmSync(file);
    const known = await server.services.tokens.authenticate(ownerToken, "127.0.0.1");
    if (typeof known === "string") throw new Error(known);
    const link = `${at(server.ready.dashboard)}/dashboard/#start=${server.services.startCodes.make(known.token)}`;
    await using browser = await chromium.launch({ executablePath: browserPath!, args: ["--no-sandbox"] });
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${at(server.ready.dashboard)}/dashboard/`);
    await page.getByLabel("API token").waitFor();
    expect(globSync("node_modules/.cache/selvedge/console-*.json")).not.toEqual([]);
    await page.goto(link);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(page.url()).not.toContain("start=");

    const requests: Request[] = [];
    context.on("request", (request) => requests.push(request));
    const foreign = await context.newPage();
    await foreign.goto(at(server.ready.edge));
    const cookieOf = async (request: Request | undefined): Promise<string | undefined> =>
      (await request?.allHeaders())?.["cookie"];
    expect(await cookieOf(requests[0])).toContain("__Host-selvedge=");
    expect(await foreign.locator("body").textContent()).not.toMatch(/cookie|selvedge=/i);

    const zone = JSON.stringify({ name: "stolen.example", account: { id: account }, padding: "" });
    const answer = foreign.waitForResponse(/client\/v4\/zones/);
    await foreign.setContent(
      `<form method="post" enctype="text/plain" action="${at(server.ready.api)}/client/v4/zones">
        <input name='${zone.slice(0, -2)}' value='"}'></form>`,
    );
    await foreign.evaluate("document.forms[0].submit()");
    const refused = await answer;
    expect([await cookieOf(refused.request()), refused.status()]).toEqual([
      expect.stringContaining("__Host-selvedge="),
      401,
    ]);
    expect((await server.call("GET", "/zones?name=stolen.example")).body.result).toEqual([]);

    await context.clearCookies();
    await page.reload();
    await page.getByLabel("API token").waitFor();
    await page.goto(link);
    await page.getByText("has been used").waitFor();
  },
);

it("the start link of a token that has changed is refused", async () => {
  const { id, value } = await make();
  const known = await server.services.tokens.authenticate(value, "127.0.0.1");
  if (typeof known === "string") throw new Error(known);
  const code = server.services.startCodes.make(known.token);
  await server.call("DELETE", `/user/tokens/${id}`);
  expect((await signIn({ code })).status).toBe(401);
});

const entries = () =>
  allEntries(server.services.storage.read)
    .selectAll()
    .where("operation", "=", "dashboard_session_create")
    .orderBy("id")
    .execute();

it("a sign-in leaves an entry, a refused token too", async () => {
  const { id, value } = await make();
  await signIn({ token: value });
  expect((await entries()).at(-1)).toMatchObject({
    action_result: "success",
    action_type: "create",
    actor_context: "dash",
    actor_token_id: id,
    raw_uri: "/dashboard/session",
    request: null,
    resource_id: null,
  });
  const rows = allEntries(server.services.storage.read).selectAll();
  expect(JSON.stringify(await rows.execute())).not.toContain(value);
  await server.services.storage.write(async (trx, changed) => {
    await trx.updateTable("api_tokens").set({ status: "disabled" }).where("id", "=", id).execute();
    changed({ kind: "api_token", id });
  });
  expect((await signIn({ token: value })).status).toBe(401);
  await expect
    .poll(async () => (await entries()).at(-1))
    .toMatchObject({ action_result: "failure", actor_token_id: id, raw_status_code: 401 });
});

it("a created zone is in the log of its account", async () => {
  const { result } = (await server.call("POST", "/zones", { name: "audited-zone.example" })).body as {
    result: { id: string; account: { id: string } };
  };
  const since = new Date(Date.now() - 60_000).toISOString();
  const before = new Date(Date.now() + 60_000).toISOString();
  const log = await server.call(
    "GET",
    `/accounts/${result.account.id}/logs/audit?since=${since}&before=${before}&resource_id=${result.id}`,
  );
  expect(log.body.result).toMatchObject([{ account: { id: result.account.id }, action: { type: "create" } }]);
});

it("a sign-out without a session writes nothing", async () => {
  let writes = 0;
  const { storage } = server.services;
  const { onWritten } = storage;
  storage.onWritten = () => writes++;
  const cookie = `__Host-selvedge=${"x".repeat(43)}`;
  const answer = await fetch(`${base}/dashboard/session`, { method: "DELETE", headers: { ...own, cookie } });
  storage.onWritten = onWritten;
  expect([answer.status, writes]).toEqual([200, 0]);
});

it("five wrong tokens at the same time are as many as one after the other", async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => signIn({ token: "t".repeat(40) })));
  expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(5);
});

it("waits after five wrong tokens of an address", async () => {
  const wrong = async (): Promise<number> => (await signIn({ token: "wrong-token" })).status;
  const answers: number[] = [];
  // The test before has used one.
  for (let i = 0; i < 6; i++) answers.push(await wrong());
  expect(answers).toContain(429);
  expect(answers.filter((status) => status === 401).length).toBeLessThanOrEqual(5);
  expect((await signIn({ token: ownerToken })).headers.get("retry-after")).toMatch(/^\d+$/);
});
