import type { IncomingMessage } from "node:http";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { openStorage, type Change, type Storage } from "../src/platform/storage/storage.ts";
import { nothingToReload } from "../src/platform/storage/changes/listeners.ts";
import { startPostgres, type TestPostgres } from "./helpers/postgres.ts";
import { ownerToken, startTestServer } from "./helpers/server.ts";
import { requestEdge } from "./helpers/edge-request.ts";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

it("nodes that share PostgreSQL start together and see each other's changes exactly once", async () => {
  const url = await postgres.createDatabase();
  const nodes: Storage[] = await Promise.all([openStorage(url), openStorage(url)]);
  const [first, second] = nodes as [Storage, Storage];
  const seen: Change[][] = [[], []];
  for (const [index, node] of nodes.entries()) {
    node.onChange(async (changes) => void seen[index]!.push(...changes), nothingToReload);
    await node.watch();
    node.follow({ everyMs: 50, whileNotifiedMs: 50 });
  }
  await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      (i % 2 === 0 ? first : second).write(async (_trx, changed) => changed({ kind: "zone", id: String(i) })),
    ),
  );
  await vi.waitFor(() => expect(seen.map((each) => each.length)).toEqual([40, 40]));
  for (const each of seen) expect(new Set(each.map((change) => change.id)).size).toBe(40);
  for (const node of nodes) await node.close();
});

it("nodes that start concurrently on an empty database create one owner with one token", async () => {
  for (const apiToken of [ownerToken, undefined, undefined, undefined]) {
    const databaseUrl = await postgres.createDatabase();
    const nodes = await Promise.all(
      Array.from({ length: 3 }, () => startTestServer({ databaseUrl, apiToken })),
    );
    const made = nodes.flatMap(({ newToken }) => (newToken === undefined ? [] : [newToken]));
    expect(made).toHaveLength(apiToken === undefined ? 1 : 0);
    expect(new Set(nodes.map(({ ready }) => ready.account_id)).size).toBe(1);
    const authorization = `Bearer ${apiToken ?? made[0]!}`;
    for (const node of nodes) {
      const { body } = await node.call("GET", "/user/tokens", undefined, { authorization });
      expect(body.result).toHaveLength(1);
      const accounts = await node.call("GET", "/accounts", undefined, { authorization });
      expect(accounts.body.result).toHaveLength(1);
    }
    for (const node of nodes) await node.close(1000);
  }
});

it("a record created through one node is served by another node's edge", async () => {
  const databaseUrl = await postgres.createDatabase();
  const first = await startTestServer({ databaseUrl });
  const second = await startTestServer({ databaseUrl });
  const zone = (await first.call("POST", "/zones", { name: "two-nodes.example" })).body.result as {
    id: string;
  };
  await first.call("POST", `/zones/${zone.id}/dns_records`, {
    type: "A",
    name: "www",
    content: "127.0.0.1",
    proxied: true,
  });
  await first.call("PUT", `/zones/${zone.id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port: 1 } } }],
  });
  await vi.waitFor(async () => {
    // Nothing listens on port 1, so only an edge that knows the record and the rule can return this page.
    const answer = await requestEdge(second.ready.edge, "www.two-nodes.example");
    expect(answer.status).toBe(521);
  });
  await second.close(1000);
  await first.close(1000);
});

it("a snippet, its rule and bot management changed through one node take effect on another as soon as it is notified, and usage says that it is of one node", async () => {
  const databaseUrl = await postgres.createDatabase();
  const first = await startTestServer({ databaseUrl });
  const second = await startTestServer({ databaseUrl });
  const zone = (await first.call("POST", "/zones", { name: "two-nodes.example" })).body.result as {
    id: string;
  };
  const upload = async (code: string): Promise<void> => {
    const modules = [{ name: "a.js", content: code }];
    await first.services.snippets.put(first.services.zones.find(zone.id)!, "a", {
      mainModule: "a.js",
      modules,
    });
  };
  const { snippets: there, storage } = second.services;
  // From here on, only notifications bring changes, and no timer.
  await vi.waitFor(() => expect(storage.following!.isNotified).toBe(true));
  const hour = 3_600_000;
  storage.follow({ everyMs: hour, whileNotifiedMs: hour });
  await upload("1");
  const rules = [{ snippet_name: "a", expression: "ssl", enabled: true }];
  await first.call("PUT", `/zones/${zone.id}/snippets/snippet_rules`, { rules });
  await vi.waitFor(() => expect(there.snippet(zone.id, "a")?.modules[0]?.content).toBe("1"));
  expect(there.snippetRules(zone.id).map(({ snippetName }) => snippetName)).toEqual(["a"]);
  await upload("2");
  await vi.waitFor(() => expect(there.snippet(zone.id, "a")?.modules[0]?.content).toBe("2"));
  await first.call("DELETE", `/zones/${zone.id}/snippets/snippet_rules`);
  await vi.waitFor(() => expect(there.snippetRules(zone.id)).toEqual([]));

  const request = { headers: {}, socket: {} } as IncomingMessage;
  const score = (): unknown => second.services.botManagement.score(zone.id, request, "/");
  expect(score()).toBeUndefined();
  await first.call("PATCH", `/zones/${zone.id}/settings/bot_management`, { value: "on" });
  await vi.waitFor(() => expect(score()).toMatchObject({ score: 2 }));

  const namespaces = `/accounts/${first.ready.account_id}/workers/dispatch/namespaces`;
  await first.call("POST", namespaces, { name: "customers" });
  const usage = `${namespaces.replace("workers", "edge")}/customers/usage`;
  const messages = async () => (await first.call("GET", usage)).body.messages;
  await vi.waitFor(async () => expect(await messages()).toMatchObject([{ code: 10_015 }]));
  await second.close(1000);
  await first.close(1000);
});

it("a change of very many rows is seen as one transaction", async () => {
  const storage = await openStorage(await postgres.createDatabase());
  const count = 30_000;
  await storage.write(async (_trx, changed) => {
    for (let i = 0; i < count; i++) changed({ kind: "dns_record", id: `r${i}.example.com`, parentId: "z" });
  });
  const logged = await storage.read
    .selectFrom("changes")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  expect(logged.count).toBe(count);
  await storage.close();
});

it("a change in a long transaction is not missed if later ones commit before it", async () => {
  const url = await postgres.createDatabase();
  const [writer, follower] = [await openStorage(url), await openStorage(url)];
  const seen: string[] = [];
  follower.onChange(
    async (changes) => void seen.push(...changes.map((change) => change.id)),
    nothingToReload,
  );
  await follower.watch();
  follower.follow({ everyMs: 20, whileNotifiedMs: 20 });
  const begun = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const long = writer.write(async (trx, changed) => {
    changed({ kind: "zone", id: "early" });
    await trx.insertInto("meta").values({ key: "holds a transaction id", value: "" }).execute();
    begun.resolve();
    await finish.promise;
  });
  await begun.promise;
  for (let i = 0; i < 5; i++)
    await writer.write(async (_trx, changed) => changed({ kind: "zone", id: `late-${i}` }));
  finish.resolve();
  await long;
  await vi.waitFor(() =>
    expect(seen.toSorted()).toEqual(["early", "late-0", "late-1", "late-2", "late-3", "late-4"]),
  );
  await writer.close();
  await follower.close();
});
