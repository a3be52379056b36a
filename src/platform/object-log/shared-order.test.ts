import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pino } from "pino";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/helpers/postgres.ts";
import { FolderArchive } from "../storage/archive/folder.ts";
import { openStorage, type Storage } from "../storage/storage.ts";
import { Catalog, noMark } from "./catalog.ts";
import { ObjectLog } from "./object-log.ts";
import { LeaseEnded, LogRewritten, SharedOrder } from "./shared-order.ts";
import { maxStamp } from "./stamps.ts";
import { writeState } from "./states.ts";

const namespace = "a".repeat(32);
const id = "b".repeat(64);
const file = { namespace, name: `${id}.1.sqlite` };
let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

/** Nodes on one database and one store of the log. Each has a lease, and a log of its objects. */
async function startNodes() {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-shared-log-"));
  const url = await postgres.createMigrated();
  const files = new FolderArchive(join(folder, "store"));
  const storages: Storage[] = [];
  onTestFinished(async () => {
    for (const storage of storages) await storage.close();
    rmSync(folder, { recursive: true });
  });
  return {
    url,
    async start(name: string) {
      const storage = await openStorage(url);
      storages.push(storage);
      const { rows } = await sql<{ id: number }>`
        insert into object_nodes (node, run, attempt, address, lease_ms, beats, leaves, has_ended)
        values (${name}, '', 1, '', 1000, 0, 0, 0) returning id`.execute(storage.read);
      const lease = { current: rows[0]!.id, isOwn: () => true };
      const objects = join(folder, name);
      mkdirSync(join(objects, namespace), { recursive: true });
      const catalog = new Catalog(join(folder, `${name}.db`));
      const lost: string[] = [];
      const losses: boolean[] = [];
      const order = new SharedOrder(storage.read, catalog, lease, {
        synced: (last) => log.stamps.see(last),
        rewritten(all, hasLoss) {
          losses.push(hasLoss);
          lost.push(...all.map((each) => each.name));
          log.replaceLost(all);
        },
      });
      const log = new ObjectLog({
        ...{ folder: objects, catalog, files, order, ready: async () => {}, everyMs: 20 },
        logger: pino({ level: "silent" }),
      });
      log.follow([namespace]);
      onTestFinished(async () => {
        await log.close();
        catalog.close();
      });
      /** The numbers in the database of an object, as a node knows them that takes it over. */
      const restored = async (): Promise<unknown[]> => {
        await order.sync();
        const to = join(folder, `${name}-restored.db`);
        rmSync(to, { force: true });
        await writeState({ catalog, files }, file, maxStamp, { to });
        using database = new DatabaseSync(to);
        return database
          .prepare("select n from t order by n")
          .all()
          .map(({ n }) => n);
      };
      return { storage, lease, catalog, log, order, lost, losses, restored, objects };
    },
  };
}

function openObject(objects: string): { insert: (from: number, to: number) => void; close: () => void } {
  const database = new DatabaseSync(join(objects, file.namespace, file.name));
  database.exec("pragma journal_mode = wal; pragma synchronous = off; create table t (n integer)");
  const insert = database.prepare("insert into t values (?)");
  return {
    insert: (from, to) => {
      for (let n = from; n <= to; n++) insert.run(n);
    },
    close: () => database.close(),
  };
}

/** Two nodes, of which the first owns an object with the numbers from 0 to 4. The log has them. */
async function startWithObject() {
  const nodes = await startNodes();
  const [owner, other] = [await nodes.start("owner"), await nodes.start("other")];
  const object = openObject(owner.objects);
  object.insert(0, 4);
  await owner.log.flush(namespace, id);
  return { nodes, owner, other, object };
}

const isUp = async (storage: Storage): Promise<boolean> =>
  storage.check().then(
    () => true,
    () => false,
  );
const numbers = (to: number): number[] => Array.from({ length: to + 1 }, (_, n) => n);

it.each([
  ["fewer rows than it lost", 1],
  ["as many", 2],
  ["more", 4],
])(
  "nodes find that the database lost rows of the log, after it was given %s, and the owner adds its objects again",
  async (_, more) => {
    const { nodes, owner, other, object } = await startWithObject();
    expect(await other.restored()).toEqual(numbers(4));
    const goBack = await postgres.save(nodes.url);
    for (const n of [5, 6]) {
      object.insert(n, n);
      await owner.log.flush(namespace, id);
    }
    expect(await other.restored()).toEqual(numbers(6));
    await goBack();
    for (let n = 7; n < 7 + more; n++) {
      object.insert(n, n);
      await owner.log.flush(namespace, id);
    }
    expect(await other.restored()).toEqual(numbers(6 + more));
    expect([owner.lost, other.lost]).toEqual([[file.name], [file.name]]);
    expect([owner.losses, other.losses]).toEqual([[true], [true]]);
    object.close();
  },
);

it("the owner adds the state of an object again that is not written any more", async () => {
  const { nodes, owner, other, object } = await startWithObject();
  const goBack = await postgres.save(nodes.url);
  object.insert(5, 6);
  object.close();
  await owner.log.flush(namespace, id);
  owner.log.unfollow([namespace]);
  await owner.log.settle();
  await goBack();
  expect(await other.restored()).toEqual(numbers(4));
  await owner.order.sync();
  await owner.log.settle();
  expect(await other.restored()).toEqual(numbers(6));
});

it("a node adds nothing while it reads the log again, and adds deletions again", async () => {
  const { nodes, owner, other, object } = await startWithObject();
  const goBack = await postgres.save(nodes.url);
  object.close();
  rmSync(join(owner.objects, namespace, file.name));
  await owner.log.flush(namespace, id);
  await goBack();
  await expect.poll(async () => isUp(owner.storage)).toBe(true);
  owner.catalog.beginAgain();
  const adding = owner.order.add({ number: 1, path: "", stamp: "" }, [], owner.lease.current);
  await expect(adding).rejects.toThrow(LogRewritten);
  await owner.log.settle();
  await expect(other.restored()).rejects.toThrow("no such table");
});

it("the owner adds a deletion again that the database lost, also after a kill", async () => {
  const { owner, other, object } = await startWithObject();
  const { number } = owner.catalog.synced;
  object.close();
  rmSync(join(owner.objects, namespace, file.name));
  await owner.log.flush(namespace, id);
  await sql`delete from object_log where number > ${number}`.execute(owner.storage.read);
  await sql`update object_log_head set number = ${number}`.execute(owner.storage.read);
  // It is killed when it has read the log, and has added nothing.
  const killed = new SharedOrder(owner.storage.read, owner.catalog, owner.lease, {
    synced: () => {},
    rewritten: () => {},
  });
  await killed.sync();
  owner.log.reset(); // as after the end of a lease
  expect(await other.restored()).toEqual(numbers(4));
  await owner.log.catchUp();
  await owner.log.settle();
  await expect(other.restored()).rejects.toThrow("no such table");
  expect(owner.catalog.lostDeletions()).toEqual([]);
});

it("parts that were removed because of their age are no loss", async () => {
  const { owner, other, object } = await startWithObject();
  await other.order.sync();
  const { number } = other.catalog.synced;
  object.insert(5, 5);
  await owner.log.flush(namespace, id);
  await sql`delete from object_log where number <= ${number}`.execute(owner.storage.read);
  await other.order.sync();
  expect(other.losses).toEqual([false]);
  // The catalog may be from before parts had marks.
  other.catalog.synced = { ...other.catalog.synced, mark: noMark };
  await other.order.sync();
  expect(other.losses).toEqual([false, false]);
  object.close();
});

it("a node adds nothing without its lease", async () => {
  const { storage, lease, log, objects } = await (await startNodes()).start("owner");
  const object = openObject(objects);
  object.insert(0, 0);
  await log.flush(namespace, id);
  await sql`update object_nodes set has_ended = 1 where id = ${lease.current}`.execute(storage.read);
  const before = await sql`select number from object_log`.execute(storage.read);
  object.insert(1, 1);
  log.noteAnswer(namespace, id);
  const order = new SharedOrder(storage.read, new Catalog(":memory:"), lease, {
    synced: () => {},
    rewritten: () => {},
  });
  await expect(order.add({ number: 1, path: "", stamp: "" }, [], lease.current)).rejects.toThrow(LeaseEnded);
  expect((await sql`select number from object_log`.execute(storage.read)).rows).toEqual(before.rows);
  object.close();
  log.reset();
});
