import { once } from "node:events";
import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { shardOf } from "../../../src/platform/object-shards/shard.ts";
import { freePort } from "../../helpers/free-port.ts";
import { apiOf, ownersIn, type AccountApi } from "../../helpers/object-nodes.ts";
import { startPostgres, type TestPostgres } from "../../helpers/postgres.ts";
import { serve, temporaryFolder, type ServerProcess } from "../../helpers/process.ts";
import { ownerToken } from "../../helpers/server.ts";
import { s3Credentials, startS3 } from "../../helpers/s3.ts";
import { waitMsMax } from "../../helpers/waits.ts";
import { callsOf, type Calls } from "../../runtime/platform.ts";

/** Objects on two nodes that share PostgreSQL and a bucket: each object on one of them, whichever is asked. */
const folder = temporaryFolder();
chmodSync(folder, 0o711); // so that the user of cells can pass
const leaseMs = 5000;
let postgres: TestPostgres;
let s3: Awaited<ReturnType<typeof startS3>>;
let databaseUrl = "";
let database: Client;

interface Node extends Calls {
  name: string;
  port: number;
  server: ServerProcess;
  api: AccountApi;
}
const nodes: Node[] = [];

async function start(name: string): Promise<Node> {
  const dataDir = join(folder, name);
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  const port = await freePort();
  const server = await serve(
    [
      ...["--data-dir", dataDir, "--database-url", databaseUrl, "--blob-url", s3.url],
      ...["--blob-access-key-id", s3Credentials.accessKeyId],
      ...["--blob-secret-access-key", s3Credentials.secretAccessKey],
      ...["--backup-folder", s3.url.replace("?", "/backups?"), "--backup-unencrypted"],
      ...["--object-log", "1s", "--object-log-first", "--object-lease-seconds", String(leaseMs / 1000)],
      ...["--node-listen", `127.0.0.1:${port}`],
    ],
    { SELVEDGE_API_TOKEN: ownerToken, SELVEDGE_API_RATE_LIMIT: "0" },
  );
  const calls = await callsOf(server.ready, ownerToken);
  const node = { ...calls, api: apiOf(server.ready), name, port, server };
  nodes.push(node);
  return node;
}

const divided = async (counts: readonly number[]): Promise<void> => {
  await vi.waitFor(
    async () => {
      const all = [...(await ownersIn(database)).values()];
      expect(nodes.map(({ port }) => all.filter((each) => each === port).length)).toEqual(counts);
    },
    { timeout: 4 * leaseMs + waitMsMax, interval: 100 },
  );
};

beforeAll(async () => {
  [postgres, s3] = await Promise.all([startPostgres(), startS3()]);
  databaseUrl = await postgres.createDatabase();
  await Promise.all([start("a"), start("b")]);
  database = new Client({ connectionString: databaseUrl });
  await database.connect();
});
afterAll(async () => {
  for (const { server } of nodes) {
    server.process.kill("SIGCONT");
    server.process.kill("SIGKILL");
    await server.exited;
  }
  await database.end();
  await s3.stop();
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

const code = `import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  memory = 0;
  instance = crypto.randomUUID();
  who() { return [...this.count(), this.instance]; }
  count() { const n = (this.ctx.storage.kv.get("n") ?? 0) + 1; this.ctx.storage.kv.put("n", n); return [n, ++this.memory]; }
  async each(call, stream) { let sum = 0; for (const n of [1, 2, 3]) sum += await call(n); return [sum, (await new Response(stream).text()).length]; }
  plan() { return this.ctx.storage.setAlarm(Date.now() + 300); }
  alarm() { this.ctx.storage.kv.put("rang", (this.ctx.storage.kv.get("rang") ?? 0) + 1); }
  rang() { return this.ctx.storage.kv.get("rang") ?? 0; }
  fail() { throw new TypeError("on purpose"); }
  webSocketMessage(socket, message) { socket.send(message + " " + this.count()[0]); }
  async fetch(request) {
    if (request.headers.get("upgrade") === "websocket") {
      const [client, server] = Object.values(new WebSocketPair());
      this.ctx.acceptWebSocket(server);
      return new Response(null, { status: 101, webSocket: client });
    }
    return Response.json([...this.count(), (await request.text()).length]);
  }
}
export default { async fetch(request, env) {
  const [, name, what] = new URL(request.url).pathname.split("/");
  const stub = env.COUNTERS.getByName(name);
  try {
    if (what === "fetch") return await stub.fetch(request);
    if (what === "each") return Response.json(await stub.each((n) => n * 10, new Blob(["x".repeat(100000)]).stream()));
    if (what === "d1") return Response.json(await env.DB.prepare("insert into t values (1) returning (select count(*) from t) as n").first("n"));
    return Response.json((await stub[what]()) ?? null);
  } catch (error) { return new Response(error.name + " " + error.message + " " + error.retryable, { status: 503 }); }
} };`;

let namespace = "";
const ownerAndOther = async (): Promise<[Node, Node]> => {
  const port = (await ownersIn(database)).get(shardOf(namespace));
  const owner = nodes.find((node) => node.port === port)!;
  return [owner, nodes.find((node) => node !== owner)!];
};
const count = async (node: Node, name: string): Promise<unknown> => {
  const { status, body } = await node.ask("counters", `/${name}/count`);
  if (status !== 200) throw new Error(body);
  return JSON.parse(body);
};

const who = async (node: Node, name: string): Promise<[number, number, string]> => {
  const { status, body } = await node.ask("counters", `/${name}/who`);
  if (status !== 200) throw new Error(body);
  return JSON.parse(body) as [number, number, string];
};
/** How soon another node ends a lease is in lease.test.ts. */
const taken = { timeout: leaseMs + waitMsMax, interval: 50 };

it("requests, methods, sockets and databases reach one instance from both nodes", async () => {
  await divided([32, 32]);
  const [a, b] = nodes as [Node, Node];
  const made = await a.api("POST", "/d1/database", { name: "db" });
  const { uuid } = made.result as { uuid: string };
  await a.deploy("counters", {
    code,
    bindings: [
      { type: "durable_object_namespace", name: "COUNTERS", class_name: "Counter" },
      { type: "d1", name: "DB", id: uuid },
    ],
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Counter"] } },
  });
  const listed = await a.api("GET", "/workers/durable_objects/namespaces");
  namespace = (listed.result as { id: string }[])[0]!.id;
  await vi.waitFor(async () => expect((await b.ask("counters", "/-/count")).status).toBe(200));
  for (let n = 1; n <= 10; n++) {
    const node = n % 2 === 0 ? a : b;
    const body = "x".repeat(n * 10_000);
    const answer = await node.ask("counters", "/one/fetch", { method: "POST", body });
    expect([answer.status, answer.body]).toEqual([200, JSON.stringify([n, n, body.length])]);
  }
  const sql = { sql: "create table t (n)" };
  expect((await b.api("POST", `/d1/database/${uuid}/query`, sql)).text).toContain('"success":true');
  for (const [i, node] of [a, b].entries()) {
    expect(await count(node, "one")).toEqual([11 + i, 11 + i]);
    expect((await node.ask("counters", "/one/each")).body).toBe("[60,100000]");
    expect((await node.ask("counters", "/one/fail")).body).toBe("TypeError on purpose undefined");
    expect((await node.ask("counters", "/one/d1")).body).toBe(String(i + 1));
  }
  for (const [i, node] of [a, b].entries()) {
    const socket = node.connect("counters", "/socket/fetch");
    const message = new Promise((resolve) =>
      socket.once("message", (data: Buffer) => resolve(data.toString())),
    );
    socket.once("open", () => socket.send("hello"));
    expect(await message).toBe(`hello ${i + 1}`);
    socket.close();
  }
  const [, other] = await ownerAndOther();
  await other.ask("counters", "/bell/plan");
  await vi.waitFor(async () => expect((await other.ask("counters", "/bell/rang")).body).toBe("1"));
});

it("operations of the API find objects from both nodes", async () => {
  const path = `/workers/durable_objects/namespaces/${namespace}/objects`;
  for (const node of nodes) {
    const listed = (await node.api("GET", path)).result as { id: string }[];
    expect(listed.length).toBe(4);
    const sql = { sql: "select count(*) as n from sqlite_master" };
    for (const { id } of listed)
      expect((await node.api("POST", `${path}/${id}/query`, sql)).text).toContain('"columns":["n"]');
    const absent = await node.api("POST", `${path}/${"0".repeat(64)}/query`, sql);
    expect(absent.status).toBe(404);
    const early = await node.api("POST", `${path}/${listed[0]!.id}/restore`, {
      timestamp: "2020-01-01T00:00:00Z",
    });
    expect([early.status, early.text]).toEqual([400, expect.stringContaining("within the last 30 days")]);
  }
  const [owner, other] = await ownerAndOther();
  const before = Date.now();
  await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(before + 1));
  const [n] = await who(owner, "one");
  const one = ((await other.api("GET", path)).result as { id: string }[]).map(({ id }) => id);
  for (const id of one) {
    const restored = await other.api("POST", `${path}/${id}/restore`, {
      timestamp: new Date(before).toISOString(),
    });
    expect(restored.status, restored.text).toBe(200);
  }
  expect((await who(other, "one"))[0]).toBe(n);
});

it("a program without the key of the installation gets no connection", async () => {
  const [node] = nodes as [Node, Node];
  const ciphers = "ECDHE-PSK-CHACHA20-POLY1305";
  const options = { port: node.port, host: "127.0.0.1", ciphers, maxVersion: "TLSv1.2" } as const;
  for (const identity of ["selvedge-node", "other"]) {
    const socket = connect({ ...options, pskCallback: () => ({ identity, psk: Buffer.alloc(32) }) });
    socket.on("secureConnect", () => socket.write("GET / HTTP/1.1\r\n\r\n"));
    const [error] = (await once(socket, "error")) as [Error];
    expect(error.message).toMatch(/alert|bad record|ECONNRESET|disconnected/i);
  }
});

it("a node that stops loses nothing, and passes its objects on at once", async () => {
  const [owner, other] = await ownerAndOther();
  for (let n = 1; n <= 5; n++) await who(owner, "stopped");
  // The other node would wait an hour for the end of a lease that is not given back.
  await database.query("update object_nodes set lease_ms = 3600000 where address like '%:' || $1::text", [
    owner.port,
  ]);
  owner.server.process.kill("SIGTERM");
  const [n] = await vi.waitFor(async () => who(other, "stopped"), taken);
  expect(n).toBe(6);
  expect(await owner.server.exited).toBe(0);
  nodes.splice(nodes.indexOf(owner), 1);
  await start(owner.name);
  await divided([32, 32]);
});

it("a suspended owner answers nothing after the other, which has everything acknowledged", async () => {
  const [owner, other] = await ownerAndOther();
  for (let n = 1; n <= 4; n++) await who(owner, "zombie");
  const [, , old] = await who(other, "zombie");
  owner.server.process.kill("SIGSTOP");
  // Requests that the owner finds when it goes on.
  const late = Array.from({ length: 5 }, async () => who(owner, "zombie").catch(() => undefined));
  const [n, memory, next] = await vi.waitFor(async () => who(other, "zombie"), taken);
  expect([n, memory, next === old]).toEqual([6, 1, false]);
  owner.server.process.kill("SIGCONT");
  // The owner passes them on, or they fail.
  const answers = (await Promise.all(late)).filter((answer) => answer !== undefined);
  answers.push(await vi.waitFor(async () => who(other, "zombie"), taken));
  expect(answers.map(([, , instance]) => instance)).not.toContain(old);
  expect(new Set(answers.map(([counted]) => counted)).size).toBe(answers.length);
  expect(Math.max(...answers.map(([counted]) => counted))).toBe(6 + answers.length);
  await divided([32, 32]);
});

it("objects lose nothing acknowledged when the database goes back to an earlier state", async () => {
  const [owner, other] = await ownerAndOther();
  for (let n = 1; n <= 3; n++) await who(owner, "back");
  await database.end();
  const goBack = await postgres.save(databaseUrl);
  database = new Client({ connectionString: databaseUrl });
  for (let n = 4; n <= 6; n++) expect((await vi.waitFor(async () => who(other, "back"), taken))[0]).toBe(n);
  await goBack();
  await database.connect();
  // The next test kills the owner: then the other one has this from the log.
  const [n] = await vi.waitFor(async () => who(other, "back"), taken);
  expect(n).toBe(7);
});

it("the other node goes on when the owner is killed, with everything acknowledged", async () => {
  const [owner, other] = await ownerAndOther();
  for (let n = 1; n <= 5; n++) await who(owner, "killed");
  owner.server.process.kill("SIGKILL");
  const [n, memory] = await vi.waitFor(async () => who(other, "killed"), taken);
  expect([n, memory]).toEqual([6, 1]);
  expect((await who(other, "back"))[0]).toBe(8);
  expect((await other.ask("counters", "/bell/rang")).body).toBe("1");
  await vi.waitFor(async () => expect((await other.ask("counters", "/one/d1")).body).toBe("3"), taken);
});
