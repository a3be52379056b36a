import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openLocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { Project } from "../wrangler/harness.ts";
import { startHosting, type Hosting } from "./platform.ts";

/** The npm package `pg` in a script, bundled as by wrangler, with a real server. */
let postgres: TestPostgres;
let database: string;
let open: Hosting;
let denying: Hosting;
const folder = mkdtempSync(join(tmpdir(), "selvedge-postgres-driver-"));

const script = `import { Client, Pool } from "pg";
import net from "node:net";
const tasks = {
  async types(client) {
    await client.query("CREATE TABLE IF NOT EXISTS things (id int PRIMARY KEY, name text, made timestamptz, more jsonb)");
    await client.query("INSERT INTO things VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", [1, "Größe", new Date(0), { a: [1] }]);
    return (await client.query("SELECT * FROM things")).rows;
  },
  async secrecy(client) {
    return (await client.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")).rows[0].ssl;
  },
  async large(client) {
    const { rows } = await client.query("SELECT repeat('x', 1000) AS text FROM generate_series(1, 5000)");
    const sent = await client.query("SELECT length($1::text) AS length", ["y".repeat(3000000)]);
    return [rows.length, new Set(rows.map(({ text }) => text)).size, sent.rows[0].length];
  },
  async fault(client) {
    try { await client.query("SELECT * FROM nothing"); } catch (error) { return error.code; }
  },
};
export default { async fetch(request, env, ctx) {
  const { task, ssl, way, url } = Object.fromEntries(new URL(request.url).searchParams);
  const options = { connectionString: url, ssl: ssl === "true", ...(way === "net" && { stream: new net.Socket() }) };
  try {
    if (task === "pool") {
      const pool = new Pool({ ...options, max: 4 });
      const rows = await Promise.all(Array.from({ length: 20 }, (_, i) => pool.query("SELECT $1::int AS i", [i])));
      ctx.waitUntil(pool.end());
      return Response.json(rows.map(({ rows: [{ i }] }) => i));
    }
    const client = new Client(options);
    await client.connect();
    try { return Response.json(await tasks[task](client)); } finally { await client.end(); }
  } catch (error) { return Response.json({ thrown: error.message }); }
} };`;

beforeAll(async () => {
  const authority = openLocalAuthority(folder);
  writeFileSync(join(folder, "ca.pem"), authority.certificate);
  const originCa = [join(folder, "ca.pem")];
  [postgres, open, denying] = await Promise.all([
    startPostgres(),
    startHosting({ privateNetworks: "all", originCa }),
    startHosting({ privateNetworks: "deny" }),
  ]);
  await postgres.secure(authority.issue(["127.0.0.1"]));
  database = await postgres.createDatabase();
  await deploy(open, "driver", script);
  await deploy(denying, "driver", script);
});
afterAll(async () => {
  await Promise.all([open.close(0), denying.close(0)]);
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

/** Bundles as wrangler does. */
async function deploy(hosting: Hosting, name: string, code: string, more: object = {}): Promise<void> {
  const project = new Project(hosting);
  project.write({
    "wrangler.json": {
      name,
      main: "index.js",
      compatibility_date: "2026-11-01",
      compatibility_flags: ["nodejs_compat"],
      ...more,
    },
    "index.js": code,
  });
  mkdirSync(join(project.folder, "node_modules"), { recursive: true });
  symlinkSync(resolve("node_modules/pg"), join(project.folder, "node_modules/pg"));
  await project.run(["deploy"]);
  project.remove();
}

async function ask(hosting: Hosting, task: string, more: Record<string, string> = {}): Promise<unknown> {
  const query = new URLSearchParams({ task, url: database, ...more }).toString();
  const { status, body } = await hosting.ask("driver", `/?${query}`);
  expect(status, body).toBe(200);
  return JSON.parse(body) as unknown;
}

describe.each([
  ["over connect()", { ssl: "false" }, false],
  ["over connect() and startTls()", { ssl: "true" }, true],
  ["over node:net", { ssl: "false", way: "net" }, false],
])("%s", (_name, options, isSecure) => {
  test("values go and come back", async () => {
    const row = { id: 1, name: "Größe", made: "1970-01-01T00:00:00.000Z", more: { a: [1] } };
    expect(await ask(open, "types", options)).toEqual([row]);
  });
  test("speaks TLS if requested", async () => {
    expect(await ask(open, "secrecy", options)).toBe(isSecure);
  });
  test("megabytes go and come back", async () => {
    expect(await ask(open, "large", options)).toEqual([5000, 1, 3_000_000]);
  });
  test("reports an error of the server as the driver's own", async () => {
    expect(await ask(open, "fault", options)).toBe("42P01");
  });
});

test("a pool answers queries that are made at the same time", async () => {
  expect(await ask(open, "pool")).toEqual(Array.from({ length: 20 }, (_, i) => i));
});

test("a private address is refused where they are denied", async () => {
  expect(await ask(denying, "secrecy")).toEqual({
    thrown:
      "proxy request failed, cannot connect to the specified address: it is a private address, which this installation does not allow",
  });
});

test("the example of the documentation", async () => {
  const [, code] = /```js database\.js\n([^]*?)```/.exec(readFileSync("docs/scripts.md", "utf8"))!;
  await deploy(open, "example", code!, { vars: { DATABASE_URL: database } });
  const { status, body } = await open.ask("example");
  expect([status, JSON.parse(body)]).toEqual([200, [{ now: expect.stringMatching(/^\d{4}-/) }]]);
});
