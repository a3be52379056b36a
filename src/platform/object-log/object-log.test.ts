import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { pino } from "pino";
import { FolderArchive } from "../storage/archive/folder.ts";
import { unawaited } from "../util/uncaught.ts";
import { copyDatabase } from "../storage/live-files/copy-database.ts";
import { Catalog } from "./catalog.ts";
import { prepareObject, writeObjects } from "./history.ts";
import { ownOrder, type LogOrder } from "./log-order.ts";
import { ObjectLog } from "./object-log.ts";
import { reconcile } from "./reconcile.ts";
import { segmentsIn } from "./segment.ts";
import { writeState } from "./states.ts";
import { stampAt } from "./stamps.ts";

const namespace = "a".repeat(32);
const id = "b".repeat(64);
const name = `${id}.1.sqlite`;
let folder = "";
let log: ObjectLog;
let catalog: Catalog;
let files: FolderArchive;
const objects = () => join(folder, "objects");
const path = () => join(objects(), namespace, name);

async function begin(change: (order: LogOrder) => LogOrder = (order) => order): Promise<void> {
  files = new FolderArchive(join(folder, "store"));
  catalog = new Catalog(join(folder, "catalog.db"));
  await reconcile(catalog, files);
  log = new ObjectLog({
    folder: objects(),
    catalog,
    files,
    order: change(ownOrder(catalog)),
    ready: async () => {},
    everyMs: 50,
    logger: pino({ level: "silent" }),
  });
  await log.catchUp();
  log.follow([namespace]);
}
async function end(): Promise<void> {
  await log.close();
  catalog.close();
}
function open(): DatabaseSync {
  const database = new DatabaseSync(path());
  database.exec(
    "pragma journal_mode = wal; pragma synchronous = off; create table if not exists t (n integer, text)",
  );
  return database;
}
const insert = (database: DatabaseSync, n: number, length = 1000): void =>
  void database.prepare("insert into t values (?, ?)").run(n, "x".repeat(length));
/** The numbers in the database as it was at a moment. */
async function numbersAt(stamp: string): Promise<number[] | undefined> {
  const to = join(folder, "state.db");
  if (!(await writeState({ catalog, files }, { namespace, name }, stamp, { to }))) return undefined;
  using database = new DatabaseSync(to);
  expect(database.prepare("pragma integrity_check").get()).toEqual({ integrity_check: "ok" });
  return database
    .prepare("select n from t order by n")
    .all()
    .map(({ n }) => n as number);
}
const upTo = (n: number): number[] => Array.from({ length: n + 1 }, (_, i) => i);

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-object-log-"));
  mkdirSync(join(objects(), namespace), { recursive: true });
  await begin();
});
afterEach(async () => {
  await end();
  rmSync(folder, { recursive: true });
});

it("has the state of each moment, also when the log restarts, is closed, and after a restart", async () => {
  const database = open();
  const stamps: string[] = [];
  for (let n = 0; n < 20; n++) {
    insert(database, n);
    stamps.push(log.noteAnswer(namespace, id));
  }
  for (let n = 20; n < 3000; n++) {
    insert(database, n);
    stamps.push(log.noteAnswer(namespace, id));
  }
  await log.settle();
  database.close(); // as for an object that is idle
  await vi.waitFor(() => expect(catalog.stateOf({ namespace, name })?.isSealed).toBe(true));
  const again = open();
  for (let n = 3000; n < 3010; n++) {
    insert(again, n);
    stamps.push(log.noteAnswer(namespace, id));
  }
  await end();
  await begin();
  for (let n = 3010; n < 3020; n++) {
    insert(again, n);
    stamps.push(log.noteAnswer(namespace, id));
  }
  await log.settle();
  for (const n of [0, 1, 10, 1500, 2999, 3000, 3009, 3010, 3019])
    expect(await numbersAt(stamps[n]!)).toEqual(upTo(n));
  again.close();
});

it("finds the catalog again in the store, and goes on after a kill without a new base", async () => {
  const database = open();
  for (let n = 0; n < 5; n++) insert(database, n);
  await log.flush(namespace, id);
  insert(database, 5);
  // The process is killed: nothing more is shipped, and the catalog is lost as well.
  const bases = catalog.files().length;
  catalog.close();
  rmSync(join(folder, "catalog.db"));
  log.unfollow([namespace]);
  await begin();
  expect(catalog.files()).toHaveLength(bases);
  await log.flush(namespace, id);
  expect(await numbersAt(log.stamps.next())).toEqual(upTo(5));
  database.close();
});

it("restores an object whose entries were added twice, because the answer to the first time was lost", async () => {
  await end();
  let isLost = false;
  await begin((order) => ({
    ...order,
    async add(...given) {
      await order.add(...given);
      if (!isLost) return;
      isLost = false;
      throw new Error("no answer");
    },
  }));
  const database = open();
  for (let n = 0; n < 5; n++) insert(database, n);
  await log.flush(namespace, id);
  const before = catalog.segments().length;
  isLost = true;
  for (let n = 5; n < 10; n++) insert(database, n);
  await log.flush(namespace, id);
  expect(catalog.segments().length).toBeGreaterThan(before + 1);
  expect(await numbersAt(log.stamps.next())).toEqual(upTo(9));
  database.close();
});

it("restores an object whose node was killed after its entries were added, and shipped them again", async () => {
  await end();
  let isKilled = false;
  await begin((order) => ({
    ...order,
    async add(...given) {
      await order.add(...given);
      if (isKilled) await new Promise(() => {}); // before it can note what is shipped
    },
  }));
  const database = open();
  for (let n = 0; n < 5; n++) insert(database, n);
  await log.flush(namespace, id);
  const before = catalog.segments().length;
  isKilled = true;
  for (let n = 5; n < 10; n++) insert(database, n);
  await vi.waitFor(() => expect(catalog.segments().length).toBe(before + 1));
  catalog.close();
  log.unfollow([namespace]);
  await begin();
  for (let n = 10; n < 12; n++) insert(database, n);
  await log.flush(namespace, id);
  expect(await numbersAt(log.stamps.next())).toEqual(upTo(11));
  database.close();
});

it("copies large databases, and what is written meanwhile", async () => {
  const database = open();
  for (let n = 0; n < 20; n++) insert(database, n, 100_000);
  database.close();
  const again = open();
  const stop = setInterval(() => insert(again, 1000, 10), 2);
  insert(again, 20);
  await log.flush(namespace, id);
  clearInterval(stop);
  expect(catalog.baseOf({ namespace, name }, log.stamps.next())?.part).not.toBe(null);
  await log.flush(namespace, id);
  const numbers = await numbersAt(log.stamps.next());
  expect(numbers).toEqual(
    again
      .prepare("select n from t order by n")
      .all()
      .map(({ n }) => n),
  );
  again.close();
});

it("refuses a damaged segment by name, and a moment in a gap, and leaves the files alone", async () => {
  const database = open();
  insert(database, 0);
  await log.flush(namespace, id);
  const before = log.stamps.next();
  insert(database, 1);
  await log.flush(namespace, id);
  const [, second] = await Array.fromAsync(segmentsIn(files));
  const bytes = readFileSync(join(folder, "store", second!.path));
  bytes[20]! ^= 1;
  writeFileSync(join(folder, "store", second!.path), bytes);
  const prepared = prepareObject({ catalog, files }, objects(), { namespace, id }, log.stamps.next());
  await expect(prepared).rejects.toThrow(`${second!.path} does not match its digest`);
  expect(await numbersAt(before)).toEqual([0]);
  expect(database.prepare("select count(*) as n from t").get()).toEqual({ n: 2 });
  database.close();
});

it("evaluates no condition of the schema when it checks a state, and refuses one that is not whole", async () => {
  const database = open();
  database.enableDefensive(false);
  database.exec("create table checked (n integer check (n = 1)); pragma ignore_check_constraints = on");
  database.exec("insert into checked values (2)");
  await log.flush(namespace, id);
  const prepare = async () =>
    prepareObject({ catalog, files }, objects(), { namespace, id }, log.stamps.next());
  expect(await prepare()).toEqual([{ namespace, name, isNew: true }]);
  database.exec(
    "pragma writable_schema = on; update sqlite_master set rootpage = 900 where name = 'checked'",
  );
  await log.flush(namespace, id);
  await expect(prepare()).rejects.toThrow(`the log of ${name} gives a database that is not whole`);
  database.close();
});

it("records the deletion of a database that was not shipped yet, and does not wait for databases that never existed", async () => {
  const database = open();
  insert(database, 0);
  log.noteAnswer(namespace, id);
  database.close();
  rmSync(path());
  await log.flush(namespace, id);
  expect(await numbersAt(log.stamps.next())).toBe(undefined);
  writeFileSync(`${path()}-wal`, "");
  rmSync(`${path()}-wal`);
  await log.flush(namespace, id);
  await log.whenShipped(new Set([namespace]));
});

it("follows no link that a cell has put into its folder, to read or to write", async () => {
  const secret = join(folder, "secret.db");
  using other = new DatabaseSync(secret);
  other.exec("create table secrets (text); insert into secrets values ('secret')");
  const before = readFileSync(secret);
  symlinkSync(secret, path());
  log.noteAnswer(namespace, id);
  await log.catchUp();
  await log.settle();
  expect(catalog.files()).toEqual([]);
  expect(await copyDatabase(path(), join(folder, "copy.db"))).toBe(false);
  rmSync(path());
  const database = open();
  await log.flush(namespace, id);
  symlinkSync(secret, `${path()}.restoring`);
  await prepareObject({ catalog, files }, objects(), { namespace, id }, log.stamps.next());
  expect(readFileSync(secret)).toEqual(before);
  database.close();
});

it("brings back all objects of a lost machine", async () => {
  const database = open();
  for (let n = 0; n < 5; n++) insert(database, n);
  await log.flush(namespace, id);
  const lost = new Catalog(join(folder, "other.db"));
  await reconcile(lost, files);
  const to = join(folder, "restored");
  const restored = await writeObjects({ catalog: lost, files }, to, stampAt(Date.now()));
  expect(restored).toEqual({ databases: 1, withGap: [] });
  expect(readdirSync(join(to, namespace))).toEqual([name]);
  lost.close();
  database.close();
});

it("adds many lost objects again without holding all of them in memory", async () => {
  const all = Array.from({ length: 48 }, (_, n) => ({
    namespace,
    name: `${n.toString(16).padStart(64, "0")}.1.sqlite`,
  }));
  const content = Buffer.alloc(250_000, 1);
  for (const file of all) writeFileSync(join(objects(), namespace, file.name), content);
  await log.catchUp();
  await log.settle();
  const before = log.stamps.next();
  const segments = catalog.segments().length;
  log.replaceLost(all.map((file) => ({ ...file, isGone: false })));
  const isAdded = (file: (typeof all)[number]): boolean =>
    (catalog.baseOf(file, log.stamps.next())?.stamp ?? "") > before;
  await vi.waitFor(() => expect(all.filter(isAdded)).toHaveLength(all.length));
  // Twelve megabytes, of which a segment could have sixteen.
  expect(catalog.segments().length).toBeGreaterThan(segments + 1);
});

it("opens nothing and keeps nothing for objects that do not write", async () => {
  const descriptors = readdirSync("/proc/self/fd").length;
  for (let n = 0; n < 100; n++) log.noteAnswer(namespace, n.toString(16).padStart(64, "0"));
  expect(readdirSync("/proc/self/fd").length).toBe(descriptors);
  expect(catalog.files()).toEqual([]);
});

it("waits for no database in which nothing was ever stored, because its process ended", async () => {
  const empty = join(objects(), namespace, `${"d".repeat(64)}.1.sqlite`);
  writeFileSync(empty, "");
  await log.catchUp();
  const database = open();
  insert(database, 0);
  await log.whenShipped(new Set([namespace]));
  expect(await numbersAt(stampAt(Date.now()))).toEqual([0]);
  const later = new DatabaseSync(empty);
  later.exec("pragma journal_mode = wal; create table t (n)");
  await log.whenShipped(new Set([namespace]));
  expect(catalog.files().length).toBe(2);
  for (const each of [database, later]) each.close();
});

it("has everything of a namespace in which objects write all the time, come and go", async () => {
  const writers = Array.from({ length: 4 }, (_, n) => {
    const object = n.toString(16).padStart(64, "0");
    const database = new DatabaseSync(join(objects(), namespace, `${object}.1.sqlite`));
    database.exec("pragma journal_mode = wal; pragma synchronous = off; create table t (n integer, text)");
    return { name: `${object}.1.sqlite`, database };
  });
  const moments: string[] = [];
  for (let round = 0; round < 60; round++) {
    for (let n = 0; n < 10; n++) for (const { database } of writers) insert(database, 10 * round + n, 10);
    if (round === 30) insert(open(), 0);
    if (round === 40) rmSync(path());
    if (round % 20 === 19) {
      await log.whenShipped(new Set([namespace]));
      moments.push(log.stamps.next());
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const [i, moment] of moments.entries())
    for (const each of writers) {
      const to = join(folder, "state.db");
      expect(await writeState({ catalog, files }, { namespace, name: each.name }, moment, { to })).toBe(true);
      using state = new DatabaseSync(to);
      expect(state.prepare("select count(*) as n from t").get()).toEqual({ n: 200 * (i + 1) });
    }
  expect(await numbersAt(moments[1]!)).toEqual([0]);
  expect(await numbersAt(moments[2]!)).toBe(undefined);
  for (const { database } of writers) database.close();
});

it("reads nothing of a namespace that is not this node's", async () => {
  await end();
  let isOwn = false;
  await begin((order) => ({ ...order, isOwn: () => isOwn }));
  log.unfollow([namespace]);
  const database = open();
  insert(database, 0);
  log.noteAnswer(namespace, id); // a call of it ends with its process
  isOwn = true;
  await log.settle();
  expect(catalog.files()).toEqual([]);
  log.noteAnswer(namespace, id);
  await log.settle();
  expect(await numbersAt(stampAt(Date.now()))).toEqual([0]);
  database.close();
});

it("copies a large database that is written at any moment in which the copy of another one ends", async () => {
  await end();
  let onCopied = async (): Promise<void> => {};
  await begin((order) => ({
    ...order,
    async addBase(base, right) {
      await order.addBase(base, right);
      unawaited(onCopied());
    },
  }));
  log.unfollow([namespace]);
  const opened: DatabaseSync[] = [];
  const write = (object: string): void => {
    const database = new DatabaseSync(join(objects(), namespace, `${object}.sqlite`));
    database.exec("pragma journal_mode = wal; pragma synchronous = off; create table t (text)");
    database.prepare("insert into t values (?)").run("x".repeat(300_000));
    database.exec("pragma wal_checkpoint");
    opened.push(database);
    log.noteAnswer(namespace, object);
  };
  const idOf = (n: number): string => n.toString(16).padStart(64, "0");
  for (let turns = 0; turns < 8; turns++) {
    onCopied = async () => {
      onCopied = async () => {};
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      write(idOf(2 * turns + 1));
    };
    write(idOf(2 * turns));
    await log.whenShipped(new Set([namespace]));
    await log.whenShipped(new Set([namespace])); // of the second one
  }
  expect(catalog.files().length).toBe(16);
  for (const database of opened) database.close();
});
