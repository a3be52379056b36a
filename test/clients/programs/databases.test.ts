import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openLocalAuthority } from "../../../src/edge/tls/certificates/local-authority.ts";
import { startPostgres } from "../../helpers/postgres.ts";
import { temporaryFolder } from "../../helpers/process.ts";
import { startHosting, type Hosting } from "../../runtime/platform.ts";
import { Project } from "../../wrangler/harness.ts";
import { startMariaDb, startRedis } from "./database-servers.ts";
import { describePrograms } from "./describe.ts";
import { debian, npm } from "./packages.ts";

/** Drivers of databases from npm in scripts, as wrangler bundles them, with real servers. */
const folder = temporaryFolder();
const authority = openLocalAuthority(folder);
const pair = authority.issue(["127.0.0.1"]);
writeFileSync(join(folder, "ca.pem"), authority.certificate);

let open: Hosting;
let denying: Hosting;
beforeAll(async () => {
  [open, denying] = await Promise.all([
    startHosting({ privateNetworks: "all", originCa: [join(folder, "ca.pem")] }),
    startHosting({ privateNetworks: "deny" }),
  ]);
});
afterAll(async () => {
  await Promise.all([open.close(0), denying.close(0)]);
  rmSync(folder, { recursive: true });
});

interface Case {
  /** The npm package with its version, and its name in imports. */
  package: string;
  /** The Debian package. If absent, PostgreSQL is started as in other tests. */
  server?: string;
  /** Starts the servers and returns their URLs, without and with TLS. */
  start: (installed: string) => Promise<{ plain: string; secure: string; stop: () => Promise<void> }>;
  /** Compatibility flags in addition to `nodejs_compat`. */
  flags?: string[];
  /** Code that declares `connect(url, isSecure)`, `end(client)` and the object `tasks`. */
  script: string;
}

const mysqlScript = `import mysql from "mysql2/promise";
const options = (url, isSecure) => ({ uri: url, disableEval: true, ...(isSecure && { ssl: {} }) });
const connect = (url, isSecure) => mysql.createConnection(options(url, isSecure));
const end = (client) => client.end();
const tasks = {
  async values(client) {
    await client.query("CREATE TABLE IF NOT EXISTS kept (id INT PRIMARY KEY, name TEXT, made DATETIME, more JSON)");
    await client.execute("REPLACE INTO kept VALUES (?, ?, ?, ?)", [1, "Größe", "1970-01-01 00:00:00", JSON.stringify({ a: [1] })]);
    const [rows] = await client.execute("SELECT id, name, more FROM kept WHERE id = ?", [1]);
    return rows.map(({ id, name, more }) => [id, name, typeof more === "string" ? JSON.parse(more) : more]);
  },
  async large(client) {
    const [rows] = await client.query("SELECT REPEAT('x', 1000) AS text FROM seq_1_to_5000");
    const [[{ length }]] = await client.execute("SELECT LENGTH(?) AS length", ["y".repeat(3000000)]);
    return [rows.length, new Set(rows.map(({ text }) => text)).size, Number(length)];
  },
  async inTurn(client) {
    const all = await Promise.all(Array.from({ length: 50 }, (_, i) => client.query("SELECT ? AS i", [i])));
    return all.map(([[{ i }]]) => i);
  },
  async secrecy(client) {
    const [[{ Value }]] = await client.query("SHOW STATUS LIKE 'Ssl_cipher'");
    return Value !== "";
  },
  async fault(client) {
    try { await client.query("SELECT * FROM nothing"); } catch (error) { return error.code; }
  },
  async pool(_client, url, isSecure) {
    const pool = mysql.createPool({ ...options(url, isSecure), connectionLimit: 4 });
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => pool.execute("SELECT ? AS i", [String(i)])));
    await pool.end();
    return all.map(([[{ i }]]) => Number(i));
  },
};`;

const redisTasks = (call: string): string => `const tasks = {
  async values(client) {
    await client.set("name", "Größe");
    ${call === "many" ? `await client.hset("more", { a: "1" }); const more = await client.hgetall("more");` : `await client.hSet("more", { a: "1" }); const more = { ...(await client.hGetAll("more")) };`}
    return [[1, await client.get("name"), { a: [Number(more.a)] }]];
  },
  async large(client) {
    await Promise.all(Array.from({ length: 5000 }, (_, i) => client.set("large:" + i, "x".repeat(1000))));
    const keys = Array.from({ length: 5000 }, (_, i) => "large:" + i);
    const rows = await ${call === "many" ? "client.mget(keys)" : "client.mGet(keys)"};
    await client.set("largest", "y".repeat(3000000));
    return [rows.length, new Set(rows).size, (await client.get("largest")).length];
  },
  async inTurn(client) {
    await client.del("counter");
    const all = await Promise.all(Array.from({ length: 50 }, () => client.incr("counter")));
    return all.map((i) => i - 1);
  },
  secrecy: null,
  async fault(client) {
    await client.set("text", "text");
    try { await client.incr("text"); } catch (error) { return error.message; }
  },
  async pool(client, url, isSecure) {
    const transaction = client.multi();
    for (let i = 0; i < 20; i++) transaction.set("in:" + i, String(i)).get("in:" + i);
    const all = await transaction.exec();
    return all.map((each) => ${call === "many" ? "each[1]" : "each"}).filter((each) => each !== "OK").map(Number);
  },
  async published(client, url, isSecure) {
    const other = await connect(url, isSecure);
    const received = ${
      call === "many"
        ? `new Promise((resolve) => other.on("message", (channel, text) => resolve([channel, text])));
    await other.subscribe("channel");`
        : `new Promise((resolve) => { globalThis.receive = (text, channel) => resolve([channel, text]); });
    await other.subscribe("channel", globalThis.receive);`
    }
    await client.publish("channel", "word");
    try { return await received; } finally { await end(other); }
  },
};`;

const startRedisTwice: Case["start"] = async (installed) => {
  const servers = await Promise.all([startRedis(installed, folder), startRedis(installed, folder, pair)]);
  const [plain, secure] = servers.map(({ port }) => `redis://:selvedge@127.0.0.1:${port}`) as [
    string,
    string,
  ];
  return { plain, secure, stop: async () => void (await Promise.all(servers.map((each) => each.stop()))) };
};

const cases: Case[] = [
  {
    package: "mysql2@3.24.6",
    server: "mariadb-server-core",
    async start(installed) {
      const server = await startMariaDb(installed, folder, pair);
      const url = `mysql://selvedge:selvedge@127.0.0.1:${server.port}/things`;
      return { plain: url, secure: url, stop: async () => server.stop() };
    },
    // It gives tls.connect() a function that checks nothing, which workerd refuses by name from 2026-06-16 on.
    flags: ["no_throw_on_not_implemented_tls_options"],
    script: mysqlScript,
  },
  {
    package: "ioredis@6.0.0",
    server: "redis-server",
    start: startRedisTwice,
    script: `import { Redis } from "ioredis";
const connect = async (url, isSecure) => {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0, ...(isSecure && { tls: {} }) });
  let why;
  client.on("error", (error) => { why = error; });
  await client.connect().catch((error) => { throw why ?? error; });
  return client;
};
const end = (client) => client.quit();
${redisTasks("many")}`,
  },
  {
    package: "redis@6.3.1",
    server: "redis-server",
    start: startRedisTwice,
    script: `import { createClient } from "redis";
const connect = async (url, isSecure) => {
  // Otherwise it looks names up with node:dns, which queries the public DNS.
  const more = url.includes("localhost") && { maintNotifications: "disabled" };
  const client = createClient({ url: isSecure ? url.replace("redis:", "rediss:") : url, socket: { reconnectStrategy: false }, ...more });
  client.on("error", () => {});
  return client.connect();
};
const end = (client) => client.close();
${redisTasks("few")}`,
  },
  {
    package: "postgres@3.4.9",
    async start() {
      const server = await startPostgres();
      await server.secure(pair);
      const url = await server.createDatabase();
      return { plain: url, secure: url, stop: async () => server.stop() };
    },
    script: `import postgres from "postgres";
const connect = async (url, isSecure) => postgres(url, { max: 1, ssl: isSecure ? "verify-full" : false, fetch_types: false, onnotice: () => {} });
const end = (sql) => sql.end();
const tasks = {
  async values(sql) {
    await sql\`CREATE TABLE IF NOT EXISTS kept (id int PRIMARY KEY, name text, more jsonb)\`;
    await sql\`INSERT INTO kept \${sql({ id: 1, name: "Größe", more: { a: [1] } })} ON CONFLICT DO NOTHING\`;
    return (await sql\`SELECT * FROM kept\`).map(({ id, name, more }) => [id, name, more]);
  },
  async large(sql) {
    const rows = await sql\`SELECT repeat('x', 1000) AS text FROM generate_series(1, 5000)\`;
    const [{ length }] = await sql\`SELECT length(\${"y".repeat(3000000)}::text) AS length\`;
    return [rows.length, new Set(rows.map(({ text }) => text)).size, length];
  },
  async inTurn(sql) {
    const all = await Promise.all(Array.from({ length: 50 }, (_, i) => sql\`SELECT \${i}::int AS i\`));
    return all.map(([{ i }]) => i);
  },
  async secrecy(sql) {
    return (await sql\`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()\`)[0].ssl;
  },
  async fault(sql) {
    try { await sql\`SELECT * FROM nothing\`; } catch (error) { return error.code; }
  },
  async pool(_sql, url, isSecure) {
    const sql = postgres(url, { max: 4, ssl: isSecure ? "verify-full" : false, fetch_types: false });
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => sql\`SELECT \${i}::int AS i\`));
    await sql.end();
    return all.map(([{ i }]) => i);
  },
};`,
  },
];
const faults: Record<string, string> = {
  mysql2: "ER_NO_SUCH_TABLE",
  postgres: "42P01",
  redis: "ERR value is not an integer or out of range",
};

const main = `
export default { async fetch(request) {
  const { task, url, tls } = Object.fromEntries(new URL(request.url).searchParams);
  const isSecure = tls === "true";
  try {
    const client = await connect(url, isSecure);
    try { return Response.json(await tasks[task](client, url, isSecure)); } finally { await end(client); }
  } catch (error) { return Response.json({ thrown: String(error?.stack ?? error) }); }
} };`;

for (const each of cases) {
  const programs = [npm(each.package), ...(each.server === undefined ? [] : [debian(each.server)])];
  describePrograms(each.package, programs, (driver, server = "") => tryDriver(each, driver, server));
}

function tryDriver(
  { package: specifier, start, flags = [], script }: Case,
  driver: string,
  server: string,
): void {
  const [name] = specifier.split("@") as [string];
  let urls: Awaited<ReturnType<Case["start"]>>;
  beforeAll(async () => {
    urls = await start(server);
    for (const hosting of [open, denying]) {
      const project = new Project(hosting);
      project.write({
        "wrangler.json": {
          name,
          main: "index.js",
          compatibility_date: "2026-11-01",
          compatibility_flags: ["nodejs_compat", ...flags],
        },
        "index.js": script + main,
      });
      symlinkSync(join(driver, "node_modules", name), join(project.folder, "node_modules", name));
      await project.run(["deploy"]);
      project.remove();
    }
  });
  afterAll(async () => urls.stop());

  const ask = async (
    hosting: Hosting,
    task: string,
    isSecure: boolean,
    host = "127.0.0.1",
  ): Promise<unknown> => {
    const url = (isSecure ? urls.secure : urls.plain).replace("127.0.0.1", host);
    const query = new URLSearchParams({ task, url, tls: String(isSecure) }).toString();
    const { status, body } = await hosting.ask(name, `/?${query}`);
    expect(status, body).toBe(200);
    return JSON.parse(body) as unknown;
  };

  describe.each([
    ["without TLS", false],
    ["with TLS", true],
  ])("%s", (_how, isSecure) => {
    const numbers = (length: number): number[] => Array.from({ length }, (_, i) => i);
    test("values are written and read back", async () => {
      expect(await ask(open, "values", isSecure)).toEqual([[1, "Größe", { a: [1] }]]);
    });
    test("megabytes are written and read back", async () => {
      expect(await ask(open, "large", isSecure)).toEqual([5000, 1, 3_000_000]);
    });
    test("concurrent commands are answered in order", async () => {
      expect(await ask(open, "inTurn", isSecure)).toEqual(numbers(50));
      expect(await ask(open, "pool", isSecure)).toEqual(numbers(20));
    });
    test("the driver reports errors of the server", async () => {
      expect(await ask(open, "fault", isSecure)).toBe(faults[name] ?? faults["redis"]);
    });
    // The Redis server with TLS accepts no plain connections.
    if (!script.includes("secrecy: null"))
      test("TLS is used if requested", async () => {
        expect(await ask(open, "secrecy", isSecure)).toBe(isSecure);
      });
    if (script.includes("published"))
      test("published messages arrive", async () => {
        expect(await ask(open, "published", isSecure)).toEqual(["channel", "word"]);
      });
  });

  test("a certificate for another name is rejected", async () => {
    expect(await ask(open, "values", true, "localhost")).toEqual({
      thrown: expect.stringContaining("its certificate is not valid for this name"),
    });
    expect(await ask(open, "values", false, "localhost")).toEqual([[1, "Größe", { a: [1] }]]);
  });

  test("a private address is rejected if private networks are denied", async () => {
    expect(await ask(denying, "values", false)).toEqual({
      thrown: expect.stringContaining("it is a private address, which this installation does not allow"),
    });
  });
}
