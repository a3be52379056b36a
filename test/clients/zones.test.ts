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

it("refuses what is no zone, naming the field", async () => {
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
