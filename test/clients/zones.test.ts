import { afterAll, expect, it } from "vitest";
import { startTestServer } from "../helpers/server.ts";

const server = await startTestServer();
afterAll(() => server.close(1000));
const { client } = server;
const accountId = server.ready.account_id;

it("creates, lists, gets, edits, checks and deletes", async () => {
  const created = await client.zones.create({
    account: { id: accountId },
    name: "Shop.Example",
    type: "full",
  });
  expect(created).toMatchObject({ name: "shop.example", status: "pending", paused: false, type: "full" });
  expect(created.name_servers).toHaveLength(2);
  const zone_id = created.id;
  await client.zones.activationCheck.trigger({ zone_id });
  const zone = await client.zones.get({ zone_id });
  expect(zone.status).toBe("active");
  expect(zone.activated_on).toMatch(/^\d{4}-/);
  expect((await client.zones.edit({ zone_id, paused: true })).paused).toBe(true);
  expect((await client.zones.edit({ zone_id, paused: false })).paused).toBe(false);
  expect(
    await Array.fromAsync(
      client.zones.list({ name: "shop.example", status: "active", account: { id: accountId } }),
    ),
  ).toHaveLength(1);
  expect(await Array.fromAsync(client.zones.list({ name: "contains:nothing" }))).toEqual([]);
  expect((await client.zones.delete({ zone_id }))?.id).toBe(zone_id);
  await expect(client.zones.get({ zone_id })).rejects.toMatchObject({ status: 404 });
});

it("rejects an invalid zone and names the field", async () => {
  await server.newZone("taken.example");
  for (const [name, code] of [
    ["taken.example", 1061],
    ["com", 1002],
    ["127.0.0.1", 1002],
    ["co.uk", 1002],
    ["a b.example", 1002],
  ] as const) {
    const refusal = await client.zones
      .create({ account: { id: accountId }, name })
      .catch((error: unknown) => error);
    expect(refusal).toMatchObject({ status: 400, errors: [{ code, source: { pointer: "/body/name" } }] });
  }
});

it("pages through every zone", async () => {
  for (let i = 0; i < 45; i++) await server.newZone(`page-${i}.example`);
  const names = (await Array.fromAsync(client.zones.list({ per_page: 20 }))).map((zone) => zone.name);
  expect(names.filter((name) => name.startsWith("page-"))).toHaveLength(45);
  expect(new Set(names).size).toBe(names.length);
});

it("accepts jump_start and reports that nothing was found", async () => {
  const body = { account: { id: accountId }, name: "jump.example", jump_start: true };
  const { status, body: answer } = await server.call("POST", "/zones", body);
  expect([status, answer.messages]).toEqual([
    200,
    [{ code: 1062, message: expect.stringContaining("no records") as string }],
  ]);
});

it("lists all settings, and changes several or none", async () => {
  const path = `/zones/${await server.newZone("settings.example")}/settings`;
  type Setting = { id: string; value: string };
  const values = async (): Promise<Record<string, string>> => {
    const settings = (await server.call("GET", path)).body.result as Setting[];
    return Object.fromEntries(settings.map(({ id, value }) => [id, value]));
  };
  const before = await values();
  expect(before).toMatchObject({ ssl: "flexible", bot_management: "off", transformations: "off" });
  const edit = async (...items: object[]) => server.call("PATCH", path, { items });
  const good = [
    { id: "bot_management", value: "on" },
    { id: "always_use_https", value: "on" },
  ];
  for (const [bad, pointer] of [
    [{ id: "ssl", value: "loose" }, "/body/items/2/value"],
    [{ id: "ssl" }, "/body/items/2/value"],
    [{ id: "brotli", value: "on" }, "/body/items/2/id"],
    [{ id: "bot_management", value: "off" }, "/body/items"],
  ] as const) {
    const { status, body } = await edit(...good, bad);
    expect([status, body.errors[0]!.source?.pointer]).toEqual([400, pointer]);
    expect(await values()).toEqual(before);
  }
  const { body } = await edit(...good);
  expect((body.result as Setting[]).map(({ id }) => id).toSorted()).toEqual([
    "always_use_https",
    "bot_management",
  ]);
  expect(await values()).toEqual({ ...before, bot_management: "on", always_use_https: "on" });
});
