import { execFile, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import sharp from "sharp";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { numbersOf, startPairWriters } from "../helpers/pair-writers.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { serve, temporaryFolder, type ServerProcess } from "../helpers/process.ts";
import { ownerToken } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { callerOf, everyWrite, scriptForm } from "../helpers/writes.ts";

/** Backups of a running platform with data of every kind, and platforms that are started from them. */
const run = promisify(execFile);
const selvedge = async (...args: string[]): Promise<Record<string, unknown>> => {
  const { stdout } = await run(process.execPath, ["bin/selvedge.js", ...args, "--json"]);
  return JSON.parse(stdout) as Record<string, unknown>;
};
const environment = { SELVEDGE_API_TOKEN: ownerToken, SELVEDGE_API_RATE_LIMIT: "0" };
const writersMax = 50;
const folder = temporaryFolder();
const dataDir = join(folder, "data");
let postgres: TestPostgres;
let server: ServerProcess;
let values: string;
/** Paths of what was made, with their answers. */
const made = new Map<string, string>();

/** The part of an answer that does not depend on the node or the time. */
const lasting = (text: string): string =>
  text.replaceAll(/"(last_used_on|\w*_url|variants)":("[^"]*"|\[.*?\])/g, "");

beforeAll(async () => {
  postgres = await startPostgres();
  server = await serve(["--data-dir", dataDir, "--edge-tls-listen", "127.0.0.1:0"], environment);
  const call = callerOf(server.ready.api);
  const account = server.ready.account_id;
  const png = await sharp({ create: { width: 40, height: 30, channels: 3, background: "teal" } })
    .png()
    .toBuffer();
  const { writes } = await everyWrite(call, account, { png, largeBytes: 200 * 1024 });
  for (const write of writes) {
    const answer = await write.send(1);
    expect(answer.status, `${write.kind}: ${answer.text}`).toBeLessThan(300);
    if (write.made !== undefined) made.set(write.made(1, answer), "");
  }
  const base = `/accounts/${account}`;
  await call(
    "PUT",
    `${base}/workers/scripts/hello`,
    scriptForm("export default { fetch: () => new Response('hello') }"),
  );
  const zone = (await call("POST", "/zones", { account: { id: account }, name: "served.example" })).result;
  const route = { pattern: "served.example/*", script: "hello" };
  await call("POST", `/zones/${zone.id}/workers/routes`, route);
  const record = { type: "A", name: "@", content: "192.0.2.1", proxied: true };
  await call("POST", `/zones/${zone.id}/dns_records`, record);
  const namespace = (await call("POST", `${base}/storage/kv/namespaces`, { title: "pairs" })).result.id;
  values = `${base}/storage/kv/namespaces/${namespace}`;
  // Zones become active, and instances complete, on their own.
  const isDone = async (path: string): Promise<boolean> => {
    const status = (await call("GET", path)).result?.status;
    return path.includes("/instances/") ? status === "complete" : status !== "pending";
  };
  for (const path of made.keys()) {
    await vi.waitFor(async () => expect(await isDone(path)).toBe(true), { interval: 50 });
    const { status, text } = await call("GET", path);
    expect(status, path).toBe(200);
    made.set(path, lasting(text));
  }
  expect(made.size).toBeGreaterThan(15);
});
afterAll(async () => {
  server.process.kill("SIGTERM");
  await server.exited;
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

/** Starts a platform on restored data, and compares what it serves with what was backed up. */
async function checkServed(args: readonly string[]): Promise<number[]> {
  const restored = await serve(args, environment);
  try {
    const call = callerOf(restored.ready.api);
    expect(restored.ready.account_id).toBe(server.ready.account_id);
    for (const [path, text] of made) {
      const answer = await call("GET", path);
      expect({ path, status: answer.status, text: lasting(answer.text) }).toEqual({
        path,
        status: 200,
        text,
      });
    }
    expect(await requestEdge(restored.ready.edge, "served.example")).toMatchObject({
      status: 200,
      body: "hello",
    });
    return await numbersOf(call, values, writersMax);
  } finally {
    restored.process.kill("SIGTERM");
    expect(await restored.exited).toBe(0);
  }
}

it("of a platform with 50 writers is one point in time, and serves on SQLite and on PostgreSQL", async () => {
  const writers = startPairWriters(callerOf(server.ready.api), values, writersMax);
  const allWrite = (): void => expect(Math.min(...writers.acknowledged())).toBeGreaterThan(1);
  await vi.waitFor(allWrite, { interval: 20 });
  const before = writers.acknowledged();
  const archive = join(folder, "archive");
  await selvedge("backup", archive, "--data-dir", dataDir);
  const sent = await writers.stop();
  expect(await selvedge("backup", "verify", archive)).toMatchObject({ missing_blobs: [] });

  const onSqlite = join(folder, "sqlite");
  await selvedge("restore", archive, "--data-dir", onSqlite);
  for (const file of readdirSync(join(dataDir, "tls")))
    expect(readFileSync(join(onSqlite, "tls", file), "utf8")).toBe(
      readFileSync(join(dataDir, "tls", file), "utf8"),
    );
  const onPostgres = [
    "--data-dir",
    join(folder, "postgres"),
    "--database-url",
    await postgres.createDatabase(),
  ];
  await selvedge("restore", archive, ...onPostgres);
  const [first, second] = [await checkServed(["--data-dir", onSqlite]), await checkServed(onPostgres)];
  expect(second).toEqual(first);
  for (const [writer, n] of first.entries()) {
    expect(n).toBeGreaterThanOrEqual(before[writer]!);
    expect(n).toBeLessThanOrEqual(sent[writer]!);
  }
});

it("has every blob that the platform wrote", async () => {
  const archive = join(folder, "quiet");
  await selvedge("backup", archive, "--data-dir", dataDir);
  const filesOf = (blobs: string): string[] =>
    readdirSync(blobs, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.endsWith("incoming"))
      .map(({ parentPath, name }) => join(parentPath, name).slice(blobs.length))
      .toSorted();
  const own = filesOf(join(dataDir, "blobs"));
  expect(own.length).toBeGreaterThan(5);
  expect(filesOf(join(archive, "blobs"))).toEqual(own);
});

it("that is killed at any moment is absent or whole", async () => {
  const writers = startPairWriters(callerOf(server.ready.api), values, 5);
  const outcomes: boolean[] = [];
  // A backup may be whole before this process sees that it has begun.
  for (let attempt = 0; attempt < 2 || (attempt < 10 && !outcomes.includes(false)); attempt++) {
    const archive = join(folder, `killed-${attempt}`);
    const child = spawn(process.execPath, ["bin/selvedge.js", "backup", archive, "--data-dir", dataDir]);
    const ended = new Promise((resolve) => child.on("exit", resolve));
    const isStarted = (): boolean => readdirSync(folder).some((name) => name.startsWith(`killed-${attempt}`));
    await vi.waitFor(() => expect(isStarted()).toBe(true), { interval: 5 });
    // From the first file to the last ones.
    await new Promise((resolve) => setTimeout(resolve, attempt === 1 ? 100 : 0));
    child.kill("SIGKILL");
    await ended;
    outcomes.push(existsSync(archive));
    if (existsSync(archive)) await selvedge("backup", "verify", archive);
  }
  await writers.stop();
  expect(outcomes).toContain(false);
});
