import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { copyDatabase } from "./copy-database.ts";
import { LogGap, LogTail, type Frames } from "./log-tail.ts";

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-log-tail-"));
  path = join(folder, "a.sqlite");
});
afterEach(() => rmSync(folder, { recursive: true }));

function create(): DatabaseSync {
  const database = new DatabaseSync(path);
  database.exec("pragma journal_mode = wal; pragma synchronous = off; create table t (n integer, text)");
  return database;
}
const insert = (database: DatabaseSync, n: number): void =>
  void database.prepare("insert into t values (?, ?)").run(n, "x".repeat(3000));
const framesOf = (tail: LogTail): Frames[] => {
  const all: Frames[] = [];
  tail.read((frames) => all.push(frames));
  return all;
};

describe("the tail of a log", () => {
  it("has the frames of committed transactions only", () => {
    using database = create();
    const tail = new LogTail(`${path}-wal`);
    expect(framesOf(tail)).not.toEqual([]);
    expect(framesOf(tail)).toEqual([]);
    database.exec("pragma cache_size = 2; begin");
    for (let n = 0; n < 50; n++) insert(database, n); // too many for the cache
    expect(framesOf(tail)).toEqual([]);
    database.exec("rollback");
    insert(database, 100);
    const [frames] = framesOf(tail);
    expect(frames?.pages).toBeGreaterThan(0);
    tail.close();
  });

  it("continues when the log restarts, and reads it to its end when it is removed", () => {
    const database = create();
    const tail = new LogTail(`${path}-wal`);
    let [salts, count] = [new Set<string>(), 0];
    for (let n = 0; n < 3000; n++) {
      insert(database, n);
      if (n % 300 === 0)
        tail.read(({ salt, bytes }) => {
          salts.add(salt);
          count += bytes.length;
        });
    }
    database.close();
    expect(tail.isSealed).toBe(false);
    tail.read(({ bytes }) => (count += bytes.length));
    expect(tail.isSealed).toBe(true);
    expect(tail.isOpen).toBe(false);
    expect(salts.size).toBeGreaterThan(2);
    expect(count).toBeGreaterThan(3000 * 4096);
  });

  it("reports missing frames when it is read too rarely", () => {
    using database = create();
    const tail = new LogTail(`${path}-wal`);
    framesOf(tail);
    for (let n = 0; n < 5000; n++) insert(database, n);
    expect(() => framesOf(tail)).toThrow(LogGap);
    tail.close();
  });

  it("continues from a position", () => {
    using database = create();
    const tail = new LogTail(`${path}-wal`);
    framesOf(tail);
    tail.close();
    insert(database, 1);
    const next = new LogTail(`${path}-wal`, tail.position, tail.isSealed);
    expect(framesOf(next)[0]?.first).toBe(tail.position!.frame + 1);
    next.close();
  });
});

const writer = `
const { DatabaseSync } = require("node:sqlite");
const { workerData: path, parentPort } = require("node:worker_threads");
const database = new DatabaseSync(path);
database.exec("pragma journal_mode = wal; pragma synchronous = full; create table accounts (id integer primary key, balance int, note text)");
database.exec("begin");
for (let i = 0; i < 400; i++) database.prepare("insert into accounts values (?, 100, ?)").run(i, "x".repeat(i * 10));
database.exec("commit");
const move = database.prepare("update accounts set balance = balance + ?, note = note || 'y' where id = ?");
parentPort.postMessage("ready");
let over = false;
parentPort.on("message", () => (over = true));
(function work() {
  for (let i = 0; i < 10; i++) {
    const [from, to] = [Math.floor(Math.random() * 400), Math.floor(Math.random() * 400)];
    database.exec("begin"); move.run(-1, from); move.run(1, to); database.exec("commit");
  }
  if (over) { database.close(); process.exit(); }
  setImmediate(work);
})();`;

describe("a copy of a database", () => {
  it("is one state, while another thread moves money and the log restarts", async () => {
    const worker = new Worker(writer, { eval: true, workerData: path });
    await new Promise((resolve) => worker.once("message", resolve));
    for (let round = 0; round < 20; round++) {
      const to = join(folder, `copy-${round}`);
      expect(await copyDatabase(path, to)).toBe(true);
      using copy = new DatabaseSync(to);
      expect(copy.prepare("pragma integrity_check").get()).toEqual({ integrity_check: "ok" });
      expect(copy.prepare("select sum(balance) as sum, count(*) as n from accounts").get()).toEqual({
        sum: 40_000,
        n: 400,
      });
    }
    worker.postMessage("end", []);
    await new Promise((resolve) => worker.once("exit", resolve));
  });

  it("is not made of a file that does not exist", async () => {
    expect(await copyDatabase(path, join(folder, "copy"))).toBe(false);
  });
});
