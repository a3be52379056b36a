import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { areEven, Node, pause, shardsByOwner, Witness } from "./crash.ts";

/** A node that is stopped gives its instances to the others first, however long it then goes on serving. */
const witness = new Witness();
const folders: string[] = [];
let postgres: TestPostgres;
let database: Client;
let first: Node;
let second: Node;

beforeAll(async () => {
  postgres = await startPostgres();
  const url = await postgres.createDatabase();
  database = new Client(url);
  await witness.listen();
  const node = (...more: string[]): Node => {
    folders.push(mkdtempSync(join(tmpdir(), "workflows-stop-")));
    const shared = ["--private-networks", "all", "--database-url", url, "--blob-url", "postgres"];
    return new Node(["--data-dir", folders.at(-1)!, ...shared, ...more]);
  };
  first = node("--lame-duck-seconds", "600");
  second = node();
  await first.start();
  await second.start();
  await first.deploy(witness);
  await database.connect();
});
afterAll(async () => {
  await first.kill("both");
  await second.stop();
  witness.close();
  await database.end();
  await postgres.stop();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

it("another node takes over before the leases end, and the stopping one still serves", async () => {
  await areEven(database);
  await first.create("a", 20);
  await witness.acknowledges(20);
  // A lease that is not given back lasts longer than this test.
  await database.query(`create function prolong() returns trigger as $$ begin
    new.lease_until := new.lease_until + interval '1 hour'; return new; end $$ language plpgsql;
    create trigger prolong before update of lease_until on workflow_shards for each row execute function prolong();
    update workflow_shards set lease_until = lease_until`);
  const signalledAt = performance.now();
  process.kill(first.pid, "SIGTERM");
  // One shard stays, for instances that are created meanwhile.
  while ((await shardsByOwner(database)).join() !== "1,63") await pause(10);
  process.stdout.write(`taken over ${(performance.now() - signalledAt).toFixed(0)} ms after SIGTERM\n`);
  await second.completed(20, 60_000);
  await first.create("b", 3);
  await second.completed(23, 60_000);
  expect(await first.call("GET", "/workflows/crash/instances/a-0/status")).toMatchObject({
    status: "complete",
  });
  expect(witness.violations).toEqual([]);
});
