import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { openStorage } from "../../src/platform/storage/storage.ts";
import { insert } from "../../src/control/zones/store.ts";
import type { Zone } from "../../src/control/zones/zone.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { Customers } from "./customers.ts";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

it("existing zones of two accounts in an older database answer by activity, then age", async () => {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-stored-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const databaseUrl = `sqlite:${join(folder, "old.db")}`;
  const settings = { databaseUrl, edgeTlsListen: "127.0.0.1:0", resolvers: ["127.0.0.1:1"] };
  const first = await startTestServer(settings);
  const customers = new Customers(first, folder);
  onTestFinished(() => customers.close());
  const [old, other] = [await customers.add("old"), await customers.add("other")];
  const outer = await old.zone("old.example");
  const zone = first.services.zones.find(outer)!;
  for (const name of ["later", "earlier", "waiting"]) await old.serve(outer, `${name}.old.example`);
  await first.close(1000);

  const inside = (label: string, more: Partial<Zone>): Zone => ({
    ...zone,
    id: label.padEnd(32, "0").replaceAll(/[^0-9a-f]/g, "a"),
    accountId: other.accountId,
    name: `${label}.old.example`,
    ...more,
  });
  const activatedOn = zone.activatedOn!;
  const zones = {
    later: inside("later", { createdOn: 1, activatedOn: activatedOn + 1 }),
    earlier: inside("earlier", { activatedOn: activatedOn - 1 }),
    waiting: inside("waiting", { createdOn: 1, activatedOn: null, status: "pending" }),
  };
  const storage = await openStorage(databaseUrl);
  await storage.write(async (trx) => {
    for (const each of Object.values(zones)) await insert(trx, each);
  });
  await storage.close();

  const second = await startTestServer(settings);
  onTestFinished(() => second.close(1000));
  const again = new Customers(second, folder);
  onTestFinished(() => again.close());
  const successor = await again.add("successor");
  const whose = async (label: string): Promise<string> => (await again.whose(`${label}.old.example`)).dns;
  expect(await Promise.all(["later", "earlier", "waiting"].map(whose))).toEqual(["old", "nobody", "old"]);
  // Another check changes nothing before the delegation exists.
  const check = async ({ id }: Zone): Promise<Zone> => {
    await second.call("PUT", `/zones/${id}/activation_check`);
    return second.services.zones.find(id)!;
  };
  expect(await check(zones.waiting)).toMatchObject({ status: "pending" });
  expect(await check(zones.later)).toMatchObject({ status: "active", authorizedBy: null });
  for (const content of zone.nameServers) {
    const record = { type: "NS", name: "later.old.example", content };
    await second.call("POST", `/zones/${outer}/dns_records`, record);
  }
  expect(await check(zones.later)).toMatchObject({ authorizedBy: "old.example" });
  expect(second.services.zones.governing("www.later.old.example")?.id).toBe(zones.later.id);
  expect(successor.accountId).not.toBe(other.accountId);
});

it("two nodes cannot concurrently create a zone and one inside it for two accounts", async () => {
  const databaseUrl = await postgres.createDatabase();
  const settings = { databaseUrl, resolvers: ["127.0.0.1:1"] };
  const one = await startTestServer(settings);
  const two = await startTestServer(settings);
  const accounts = await Promise.all(
    ["X", "Y"].map(async (name) => (await one.call("POST", "/accounts", { name })).body.result.id as string),
  );
  await vi.waitFor(() => expect(two.services.accounts.find(accounts[1]!)).toBeDefined());
  const create = async (node: TestServer, id: string, name: string): Promise<number> =>
    (await node.call("POST", "/zones", { account: { id }, name })).status;
  for (let i = 0; i < 10; i++) {
    const results = await Promise.all([
      create(one, accounts[0]!, `shop${i}.example`),
      create(two, accounts[1]!, `login.shop${i}.example`),
      create(one, accounts[1]!, `x.login.shop${i}.example`),
    ]);
    const [outer, ...inside] = results;
    expect([200, 400]).toContain(outer);
    expect(inside).toEqual(outer === 200 ? [400, 400] : [200, 200]);
  }
  await Promise.all([one, two].map((node) => node.close(1000)));
});
