import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { ObjectNodes, type ObjectNode } from "../../helpers/object-nodes.ts";
import { serve } from "../../helpers/process.ts";
import { ownerToken } from "../../helpers/server.ts";
import { callsOf, type Calls } from "../../runtime/platform.ts";

/** The data of objects on two nodes: its deletion, restores of it, and backups. */
const run = promisify(execFile);
const selvedge = async (...args: string[]): Promise<Record<string, unknown>> =>
  JSON.parse((await run(process.execPath, ["bin/selvedge.js", ...args, "--json"])).stdout);
let nodes: ObjectNodes;
let namespace = "";
let database = "";
const later = { interval: 50 };

const code = `import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  count() { const n = (this.ctx.storage.kv.get("n") ?? 0) + 1; this.ctx.storage.kv.put("n", n); return n; }
  plan() { return this.ctx.storage.setAlarm(Date.now() + 3_600_000); }
  alarm() {}
  planned() { return this.ctx.storage.getAlarm(); }
  grow() { this.ctx.storage.sql.exec("create table if not exists t (b blob)"); this.ctx.storage.sql.exec("insert into t values (randomblob(500000))"); return this.ctx.storage.sql.exec("select sum(length(b)) as n from t").one().n; }
}
export default { async fetch(request, env) {
  const [, name, what, sql] = new URL(request.url).pathname.split("/");
  try {
    if (name === "d1") return Response.json((await env.DB.prepare(decodeURIComponent(what)).run()).results);
    return Response.json((await env.COUNTERS.getByName(name)[what]()) ?? null);
  } catch (error) { return new Response(error.message, { status: 503 }); }
} };`;
const bindings = [{ type: "durable_object_namespace", name: "COUNTERS", class_name: "Counter" }];
const deploy = async (
  node: Calls,
  name = "counters",
  metadata: object = {},
  more: object[] = [],
): Promise<void> =>
  node.deploy(name, {
    code,
    bindings: [...bindings, ...more] as Record<string, unknown>[],
    metadata: { ...metadata },
  });
const first = { migrations: { new_tag: "v1", new_sqlite_classes: ["Counter"] } };

async function ask(node: Calls, path: string, script = "counters"): Promise<unknown> {
  const { status, body } = await node.ask(script, path);
  if (status !== 200) throw new Error(body);
  return JSON.parse(body);
}
const namespaceOf = async (node: ObjectNode, script: string): Promise<string> => {
  const { result } = await node.api("GET", "/workers/durable_objects/namespaces");
  return (result as { id: string; script: string }[]).find((each) => each.script === script)!.id;
};
const pathOf = (id: string): string => `/workers/durable_objects/namespaces/${id}/objects`;
const idsOf = async (node: ObjectNode, id = namespace): Promise<string[]> =>
  ((await node.api("GET", pathOf(id))).result as { id: string }[]).map((each) => each.id);
const succeed = async (
  answer: Promise<{ status: number; text: string; result: unknown }>,
): Promise<unknown> => {
  const { status, text, result } = await answer;
  expect(status, text).toBe(200);
  return result;
};

const foldersOf = ({ dataDir }: ObjectNode): string[] => readdirSync(join(dataDir, "objects"));

/** The files of a namespace that the log of the nodes has and that are not deleted. */
async function filesInLog(id: string): Promise<string[]> {
  const { rows } = await nodes.database.query<{ part: string }>(
    "select part from object_log order by number",
  );
  const found = new Map<string, boolean>();
  for (const { part } of rows)
    for (const [namespace, name, , , isGone] of (JSON.parse(part) as Part).segment?.bases ?? [])
      if (namespace === id) found.set(name, isGone === 0);
  return [...found].flatMap(([name, isThere]) => (isThere ? [name] : []));
}
interface Part {
  segment?: { bases: [string, string, string, string, 0 | 1][] };
}

beforeAll(async () => {
  nodes = await ObjectNodes.begin({
    leaseMs: 8000,
    settings: ["--object-log-first", "--metrics-listen", "127.0.0.1:0"],
  });
  await nodes.start("a");
  await nodes.start("b");
  await nodes.divided();
  const [a, b] = nodes.all as [ObjectNode, ObjectNode];
  database = ((await succeed(a.api("POST", "/d1/database", { name: "db" }))) as { uuid: string }).uuid;
  await deploy(a, "counters", first, [{ type: "d1", name: "DB", id: database }]);
  namespace = await namespaceOf(a, "counters");
  await vi.waitFor(async () => ask(b, "/ready/count"), later);
});
afterAll(async () => nodes.close());

it("the nodes and their metrics show the shards that each has", async () => {
  const [a] = nodes.all as [ObjectNode, ObjectNode];
  const listed = (await succeed(a.api("GET", "/edge/nodes"))) as { object_shards: number }[];
  expect(listed.map((node) => node.object_shards)).toEqual([32, 32]);
  for (const { server } of nodes.all) {
    const text = await (await fetch(server.ready.metrics!)).text();
    expect(text).toContain("selvedge_object_shards 32\n");
    expect(Number(/selvedge_object_shards_taken_total (\d+)/.exec(text)![1])).toBeGreaterThanOrEqual(32);
    expect(Number(/selvedge_object_lease_age_seconds ([\d.]+)/.exec(text)![1])).toBeLessThan(8);
  }
});

it("an object that is deleted through another node does not come back when its owner is killed", async () => {
  const [owner, other] = await nodes.ownerAndOther(namespace);
  for (let n = 1; n <= 3; n++) expect(await ask(other, "/gone/count")).toBe(n);
  await ask(other, "/gone/plan");
  const before = await idsOf(other);
  expect(await ask(owner, "/kept/count")).toBe(1);
  const kept = (await idsOf(other)).find((id) => !before.includes(id))!;
  for (const id of before) await succeed(other.api("DELETE", `${pathOf(namespace)}/${id}`));
  await deploy(other, "orphan", first);
  const orphan = await namespaceOf(other, "orphan");
  await vi.waitFor(async () => ask(other, "/one/count", "orphan"), later);
  expect(await filesInLog(orphan)).not.toEqual([]);
  await nodes.end(owner, "SIGKILL");
  // Deleted while no node has it, if the killed one had it.
  await succeed(other.api("DELETE", "/workers/scripts/orphan?force=true"));
  expect(await vi.waitFor(async () => idsOf(other), later)).toEqual([kept]);
  expect(await ask(other, "/gone/planned")).toBe(null);
  expect(await ask(other, "/gone/count")).toBe(1);
  expect(await ask(other, "/kept/count")).toBe(2);
  await nodes.start(owner.name);
  await nodes.divided();
  await vi.waitFor(async () => expect(await filesInLog(orphan)).toEqual([]), later);
});

it("a database is restored and deleted through another node than its own, and stays deleted", async () => {
  const path = `/d1/database/${database}`;
  const old = database.replaceAll("-", "");
  const [owner, other] = await nodes.ownerAndOther(old);
  const query = async (node: ObjectNode, sql: string): Promise<unknown> =>
    succeed(node.api("POST", `${path}/query`, { sql }));
  await query(other, "create table t (n)");
  await query(other, "insert into t values (1)");
  const { bookmark } = (await succeed(other.api("GET", `${path}/time_travel/bookmark`))) as {
    bookmark: string;
  };
  await query(other, "insert into t values (2)");
  await succeed(other.api("POST", `${path}/time_travel/restore?bookmark=${bookmark}`));
  for (const node of [owner, other]) expect(await ask(node, "/d1/select%20*%20from%20t")).toEqual([{ n: 1 }]);
  await succeed(other.api("DELETE", path));
  for (const node of [owner, other]) {
    await vi.waitFor(
      async () => expect((await node.api("POST", `${path}/query`, { sql: "select 1" })).status).toBe(404),
      later,
    );
    await expect(ask(node, "/d1/select%201")).rejects.toThrow();
    await vi.waitFor(() => expect(foldersOf(node)).not.toContain(old), later);
  }
  // A database with the same name is empty.
  const again = (await succeed(other.api("POST", "/d1/database", { name: "db" }))) as { uuid: string };
  const asked = await other.api("POST", `/d1/database/${again.uuid}/query`, {
    sql: "select count(*) as n from sqlite_master where name = 't'",
  });
  expect(asked.text).toContain('"n":0');
  database = again.uuid;
  await vi.waitFor(async () => expect(await filesInLog(old)).toEqual([]), later);
});

it("the objects of a script that is deleted are deleted with it, and its name starts without them", async () => {
  const [a, b] = nodes.all as [ObjectNode, ObjectNode];
  await deploy(a, "short", first);
  const id = await namespaceOf(a, "short");
  await vi.waitFor(async () => ask(b, "/one/count", "short"), later);
  const [owner, other] = await nodes.ownerAndOther(id);
  const n = (await ask(other, "/one/count", "short")) as number;
  expect(await ask(owner, "/one/count", "short")).toBe(n + 1);
  await succeed(other.api("DELETE", "/workers/scripts/short?force=true"));
  for (const node of [owner, other]) {
    await vi.waitFor(async () => expect((await node.ask("short", "/one/count")).status).not.toBe(200), later);
    await vi.waitFor(() => expect(foldersOf(node)).not.toContain(id), later);
    expect((await node.api("GET", pathOf(id))).status).toBe(404);
  }
  await vi.waitFor(async () => expect(await filesInLog(id)).toEqual([]), later);
  await deploy(other, "short", first);
  expect(await namespaceOf(other, "short")).not.toBe(id);
  for (const [i, node] of [other, owner].entries())
    expect(await vi.waitFor(async () => ask(node, "/one/count", "short"), later)).toBe(i + 1);
});

it("objects keep their data when their class and their script get other names, over another node", async () => {
  const [a] = nodes.all as [ObjectNode, ObjectNode];
  await deploy(a, "old", first);
  const id = await namespaceOf(a, "old");
  const [owner, other] = await nodes.ownerAndOther(id);
  expect(await vi.waitFor(async () => ask(other, "/one/count", "old"), later)).toBe(1);
  const renamed = code.replace("class Counter", "class Renamed");
  await other.deploy("old", {
    code: renamed,
    bindings: [{ type: "durable_object_namespace", name: "COUNTERS", class_name: "Renamed" }],
    metadata: {
      migrations: { old_tag: "v1", new_tag: "v2", renamed_classes: [{ from: "Counter", to: "Renamed" }] },
    },
  });
  for (const [i, node] of [other, owner].entries())
    expect(await vi.waitFor(async () => ask(node, "/one/count", "old"), later)).toBe(i + 2);
  await other.deploy("new", {
    code,
    bindings,
    metadata: {
      migrations: {
        new_tag: "v1",
        transferred_classes: [{ from: "Renamed", from_script: "old", to: "Counter" }],
      },
    },
  });
  expect(await namespaceOf(other, "new")).toBe(id);
  for (const [i, node] of [other, owner].entries())
    expect(await vi.waitFor(async () => ask(node, "/one/count", "new"), later)).toBe(i + 4);
});

it("a backup has the objects of all nodes, and is restored for nodes and for SQLite", async () => {
  const [a, b] = nodes.all as [ObjectNode, ObjectNode];
  await deploy(a, "counters", {}, [{ type: "d1", name: "DB", id: database }]);
  await vi.waitFor(async () => ask(b, "/d1/create%20table%20if%20not%20exists%20kept%20(n)"), later);
  await ask(a, "/d1/insert%20into%20kept%20values%20(7)");
  const counted = (await ask(a, "/backed/count")) as number;
  const grown = (await ask(b, "/large/grow")) as number;
  await ask(a, "/late/plan");
  const planned = await ask(a, "/late/planned");
  const target = join(nodes.folder, "backup");
  const made = await selvedge("backup", target, ...b.settings);
  expect(made["objects"]).toBeGreaterThanOrEqual(5);
  expect(JSON.stringify(made["left_out"])).not.toMatch(/object|D1/i);
  // Later writes are not in it.
  await ask(a, "/backed/count");
  const [place, sqlite] = [join(nodes.folder, "other-place"), ["--data-dir", join(nodes.folder, "sqlite")]];
  const database2 = ["--database-url", await nodes.postgres.createDatabase(), "--blob-url", "postgres"];
  const into = ["--data-dir", join(nodes.folder, "restored"), ...database2];
  const log = (folder: string): string[] => ["--object-log", "1s", "--backup-folder", folder];
  const used = selvedge("restore", target, ...into, ...log(join(nodes.folder, "place")));
  await Promise.all([
    expect(used).rejects.toThrow("unused location"),
    selvedge("restore", target, ...sqlite),
  ]);
  await selvedge("restore", target, ...into, ...log(place));
  const check = async (args: readonly string[]): Promise<void> => {
    const server = await serve(args, { SELVEDGE_API_TOKEN: ownerToken });
    onTestFinished(async () => {
      server.process.kill("SIGKILL");
      await server.exited;
    });
    const node = await callsOf(server.ready, ownerToken);
    expect(await vi.waitFor(async () => ask(node, "/backed/count"), later)).toBe(counted + 1);
    expect(await ask(node, "/large/grow")).toBe(grown + 500_000);
    expect(await ask(node, "/late/planned")).toBe(planned);
    expect(await ask(node, "/d1/select%20*%20from%20kept")).toEqual([{ n: 7 }]);
  };
  await Promise.all([check([...into, ...log(place), "--node-listen", "127.0.0.1:0"]), check(sqlite)]);
});
