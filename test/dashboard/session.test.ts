import { afterAll, beforeAll, expect, it } from "vitest";
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

it("waits after five wrong tokens of an address", async () => {
  const wrong = async (): Promise<number> => (await signIn({ token: "wrong-token" })).status;
  const answers: number[] = [];
  // The test before has used one.
  for (let i = 0; i < 6; i++) answers.push(await wrong());
  expect(answers).toContain(429);
  expect(answers.filter((status) => status === 401).length).toBeLessThanOrEqual(5);
  expect((await signIn({ token: ownerToken })).headers.get("retry-after")).toMatch(/^\d+$/);
});
