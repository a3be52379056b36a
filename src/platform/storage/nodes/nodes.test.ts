import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { describeStorage } from "../../../../test/helpers/storage-matrix.ts";
import { startPostgres, type TestPostgres } from "../../../../test/helpers/postgres.ts";
import { openStorage, type Storage } from "../storage.ts";
import { identityIn, temporaryIdentity, type NodeIdentity } from "./node-identity.ts";
import { NodeInUse, NodeRegistry } from "./node-registry.ts";
import { forgetEnded, leastSeq } from "./node-store.ts";

const logger = pino({ level: "silent" });
const root = mkdtempSync(join(tmpdir(), "selvedge-nodes-"));
afterAll(() => rmSync(root, { recursive: true }));
const folder = (name: string): string => {
  const path = join(root, name);
  mkdirSync(path);
  return path;
};

describe("the identity of a node", () => {
  it("stays in its folder, and is replaced only if the file is incomplete", () => {
    const path = folder("own");
    const first = identityIn(path);
    expect(identityIn(path)).toEqual(first);
    writeFileSync(join(path, "node.json"), '{"id":"1');
    expect(identityIn(path).id).not.toBe(first.id);
  });

  it("has another place in a copy of the folder", () => {
    const [original, copy] = [folder("original"), folder("copy")];
    const first = identityIn(original);
    copyFileSync(join(original, "node.json"), join(copy, "node.json"));
    const second = identityIn(copy);
    expect(second.id).toBe(first.id);
    expect(second.place).not.toBe(first.place);
  });
});

describeStorage("the table of nodes", (open) => {
  const registryOf = (storage: Storage, identity = temporaryIdentity()): NodeRegistry =>
    new NodeRegistry(storage, identity, "files", logger);

  it("lists a node that runs, and afterwards as stopped; a new start takes its row", async () => {
    const storage = await open();
    const identity = { id: "a", place: "here" };
    const first = registryOf(storage, identity);
    await first.start();
    expect(await first.list()).toMatchObject([{ id: "a", state: "running", endedOn: null, blobs: "files" }]);
    await first.stop();
    const second = registryOf(storage, identity);
    expect(await second.list()).toMatchObject([{ id: "a", state: "stopped" }]);
    await second.start();
    expect(await second.list()).toMatchObject([{ id: "a", state: "running", run: second.run }]);
    await second.stop();
    await storage.close();
  });

  it("takes over at once from a process of the same folder that was killed", async () => {
    const storage = await open();
    const identity = { id: "a", place: "here" };
    const killed = registryOf(storage, identity);
    await killed.start();
    const next = registryOf(storage, identity);
    await next.start();
    expect(await next.list()).toMatchObject([{ run: next.run, state: "running" }]);
    await next.stop();
    await storage.close();
  });

  it("stays bounded when a great many nodes have ended", async () => {
    const storage = await open();
    const minuteAgo = Date.now() - 60_000;
    for (let i = 0; i < 300; i++)
      await sql`insert into nodes (id, run, name, pid, place, version, blobs, started_on, seen_on, ended_on)
        values (${`n${i}`}, 'r', 'n', 1, 'p', '1.0.0', 'files', 1, ${minuteAgo - i}, ${minuteAgo})`.execute(
        storage.read,
      );
    await forgetEnded(storage.read, storage.engine);
    const { rows } = await sql<{ id: string }>`select id from nodes order by seen_on desc`.execute(
      storage.read,
    );
    expect(rows.map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, i) => `n${i}`));
    await sql`update nodes set seen_on = 1`.execute(storage.read);
    await forgetEnded(storage.read, storage.engine);
    expect((await sql`select id from nodes`.execute(storage.read)).rows).toEqual([]);
    await storage.close();
  });
});

describe("nodes that share PostgreSQL", () => {
  let postgres: TestPostgres;
  let storage: Storage;
  const started: NodeRegistry[] = [];
  beforeAll(async () => {
    postgres = await startPostgres();
    storage = await openStorage(await postgres.createMigrated());
  });
  afterAll(async () => {
    for (const each of started) await each.stop();
    await storage.close();
    await postgres.stop();
  });
  async function startNode(identity: NodeIdentity = temporaryIdentity()): Promise<NodeRegistry> {
    const registry = new NodeRegistry(storage, identity, "postgres", logger);
    await registry.start();
    started.push(registry);
    return registry;
  }

  it("refuse the identity of a living node from another folder, and name that node", async () => {
    const first = await startNode({ id: "copied", place: "original" });
    const copy = startNode({ id: "copied", place: "copy" });
    await expect(copy).rejects.toThrow(NodeInUse);
    await expect(copy).rejects.toThrow(new RegExp(`process ${process.pid} on .*copy of its folder`, "s"));
    await first.check();
    await first.stop();
    const moved = await startNode({ id: "copied", place: "copy" });
    expect((await moved.list()).find(({ id }) => id === "copied")).toMatchObject({ place: "copy" });
  });

  it("take over the identity of a node elsewhere that does not come back", async () => {
    await sql`insert into nodes (id, run, name, pid, place, version, blobs, started_on, seen_on)
      values ('dead', 'r', 'n', 1, 'gone', '1.0.0', 'files', 1,
        (extract(epoch from clock_timestamp()) * 1000)::bigint - 9000)`.execute(storage.read);
    const node = await startNode({ id: "dead", place: "new" });
    expect((await node.list()).find(({ id }) => id === "dead")).toMatchObject({ run: node.run });
  });

  it("notice a node that is taken over while it is suspended, which is then not ready", async () => {
    const first = await startNode({ id: "paused", place: "original" });
    await sql`update nodes set run = 'other' where id = 'paused'`.execute(storage.read);
    await vi.waitFor(() => expect(first.check()).rejects.toThrow(NodeInUse));
    // The other process stops, and this one goes on.
    await sql`update nodes set ended_on = 1 where id = 'paused'`.execute(storage.read);
    await vi.waitFor(() => first.check());
  });

  it("count each other, and say which changes all of them have taken over", async () => {
    const [first, second] = [await startNode(), await startNode()];
    onTestFinished(() => first.stop());
    first.seq = () => 7;
    second.seq = () => 5;
    await vi.waitFor(async () => expect(await leastSeq(storage.read)).toBe(5));
    await vi.waitFor(() => expect(first.live).toBeGreaterThanOrEqual(2));
    const before = first.live;
    await second.stop();
    await vi.waitFor(async () => expect(await leastSeq(storage.read)).toBe(7));
    await vi.waitFor(() => expect(first.live).toBe(before - 1));
  });
});
