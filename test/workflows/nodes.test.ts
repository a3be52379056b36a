import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { areEven, Node, pause, Witness } from "./crash.ts";

/**
 * Two nodes that share a PostgreSQL database share the instances. When one dies, the other takes them all
 * over.
 */
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
  await database.connect();
  await witness.listen();
  const node = (): Node => {
    folders.push(mkdtempSync(join(tmpdir(), "workflows-nodes-")));
    return new Node([
      "--data-dir",
      folders.at(-1)!,
      "--private-networks",
      "all",
      "--database-url",
      url,
      "--blob-url",
      "postgres",
    ]);
  };
  first = node();
  second = node();
  await first.start();
  await second.start();
  await first.deploy(witness);
});
afterAll(async () => {
  await second.stop();
  await first.stop();
  witness.close();
  await database.end();
  await postgres.stop();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

interface Row {
  id: string;
  status: string;
}
const path = "/workflows/crash/instances";

it("each takes half of the work, and forwards commands for the other's instances", async () => {
  await areEven(database);
  await first.create("a", 10);
  await second.create("b", 10);
  // Sent to the node that does not own it.
  await second.call("PATCH", `${path}/a-0/status`, { status: "pause" });
  await first.call("PATCH", `${path}/b-0/status`, { status: "terminate" });
  await first.call("PATCH", `${path}/a-0/status`, { status: "resume" });
  expect(await first.call("GET", `${path}/b-0/status`)).toMatchObject({ status: "terminated" });
  await expect(first.call("PATCH", `${path}/b-0/status`, { status: "terminate" })).rejects.toThrow("10401");
  await second.completed(19, 60_000);
  expect(witness.violations).toEqual([]);
});

it("a suspended node whose instances were taken over starts no step of them again", async () => {
  const before = (await second.counts())["complete"]!;
  await first.create("z", 40);
  await witness.acknowledges(60);
  process.kill(first.pid, "SIGSTOP");
  await second.completed(before + 40, 60_000);
  process.kill(first.pid, "SIGCONT");
  // A pending action would happen once it has taken its share again, and runs instances.
  await areEven(database);
  let attempt = 0;
  await vi.waitFor(async () => first.create(`y${attempt++}`, 1));
  await witness.acknowledges(10);
  expect(witness.violations).toEqual([]);
});

it("continues a dead node's instances, and repeats no acknowledged step", async () => {
  const ids = [...(await first.create("c", 30)), ...(await second.create("d", 30))];
  await witness.acknowledges(100);
  const killedAt = performance.now();
  await first.kill("both");
  const status = async (): Promise<Row[]> => (await second.call("GET", `${path}?per_page=100`)) as Row[];
  const stuck = new Set(ids.filter((id) => id.startsWith("c")));
  let takenOverMs = 0;
  while (stuck.size > 0) {
    for (const { id, status: now } of await status()) if (now === "complete") stuck.delete(id);
    if (takenOverMs === 0 && stuck.size < 30) takenOverMs = performance.now() - killedAt;
    if (performance.now() - killedAt > 90_000) throw new Error(`${stuck.size} instances are stuck`);
    await pause(50);
  }
  // 15 seconds, two for a run, and a margin for a busy machine.
  expect(takenOverMs).toBeLessThan(45_000);
  expect(witness.violations).toEqual([]);
});

it("continues its own instances after a suspension longer than its leases", async () => {
  const before = (await second.counts())["complete"]!;
  await second.create("e", 20);
  await witness.acknowledges(30);
  process.kill(second.pid, "SIGSTOP");
  await pause(11_000); // leases last ten seconds
  process.kill(second.pid, "SIGCONT");
  await second.completed(before + 20, 60_000);
  expect(witness.violations).toEqual([]);
});
