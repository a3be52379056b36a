import { serve } from "@hono/node-server";
import { Hono } from "hono";
import type { AddressInfo } from "node:net";
import { openStorage } from "../../src/platform/storage/storage.ts";
import { newId } from "../../src/platform/util/ids.ts";

/** The baseline for the API: the same router and storage, with one statement per call and nothing else. */
const storage = await openStorage(`sqlite:${process.argv[2]}`);
const now = Date.now();
const zoneId = newId();
const accountId = newId();
await storage.write(async (trx) => {
  await trx
    .insertInto("accounts")
    .values({ id: accountId, name: "a", type: "standard", settings: "{}", has_billing: 1, created_on: now })
    .execute();
  await trx
    .insertInto("zones")
    .values({
      id: zoneId,
      account_id: accountId,
      name: "bench.example",
      type: "full",
      status: "active",
      paused: 0,
      plan: "enterprise",
      name_servers: "[]",
      vanity_name_servers: "[]",
      verification_key: null,
      smart_routing: "off",
      smart_routing_modified_on: null,
      serial: 1,
      record_count: 1,
      created_on: now,
      modified_on: now,
      activated_on: now,
      checked_on: null,
    })
    .execute();
});
const row = (name: string, content: string) => ({
  id: newId(),
  zone_id: zoneId,
  type: "A",
  name,
  content,
  data: null,
  priority: null,
  ttl: 300,
  proxied: 0 as const,
  settings: "{}",
  comment: null,
  tags: "[]",
  created_on: now,
  modified_on: now,
  comment_modified_on: null,
  tags_modified_on: null,
});
const first = row("first.bench.example", "192.0.2.1");
await storage.write(async (trx) => trx.insertInto("dns_records").values(first).execute());

const app = new Hono();
app.get("/record", async (context) => {
  const found = await storage.read
    .selectFrom("dns_records")
    .selectAll()
    .where("id", "=", first.id)
    .executeTakeFirst();
  return context.json(found);
});
app.post("/record", async (context) => {
  const body: { name: string; content: string } = await context.req.json();
  const values = row(body.name, body.content);
  await storage.write(async (trx) => trx.insertInto("dns_records").values(values).execute());
  return context.json(values);
});
const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, (address: AddressInfo) => {
  process.stdout.write(String(address.port));
});
process.once("SIGTERM", () => {
  server.close();
  process.exit(0);
});
