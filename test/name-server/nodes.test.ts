import { afterAll, beforeAll, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { startTestServer } from "../helpers/server.ts";
import { ask, edns } from "./ask.ts";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

it("a change through one node is answered by another, with the same serial and signed with the same key", async () => {
  const databaseUrl = await postgres.createDatabase();
  const first = await startTestServer({ databaseUrl });
  const second = await startTestServer({ databaseUrl });
  const zone = "two-nodes.example";
  const account = { id: first.ready.account_id };
  const { id: zone_id } = await first.client.zones.create({ account, name: zone });
  await first.client.zones.activationCheck.trigger({ zone_id });
  await first.client.dns.dnssec.edit({ zone_id, status: "active" });
  const answers = async (server: typeof first, name: string, type: string): Promise<string[]> =>
    (await ask(server, name, type, edns())).answers;
  for (let round = 0; round < 5; round++) {
    const content = `192.0.2.${round}`;
    await first.client.dns.records.create({ zone_id, type: "A", name: `n${round}`, content, ttl: 60 });
    await expect
      .poll(() => answers(second, `n${round}.${zone}`, "A"))
      .toEqual([`n${round}.${zone} 60 A ${content}`]);
  }
  const isSame = async (type: string): Promise<boolean> =>
    (await answers(first, zone, type)).join() === (await answers(second, zone, type)).join();
  for (const type of ["DNSKEY", "UNKNOWN_59", "SOA"]) await expect.poll(() => isSame(type)).toBe(true);
  await second.close(1000);
  await first.close(1000);
});
