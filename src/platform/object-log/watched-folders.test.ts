import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FollowedFile } from "./followed-file.ts";
import { FollowedFiles } from "./followed-files.ts";
import { noStamp, Stamps } from "./stamps.ts";
import { WatchedFolders } from "./watched-folders.ts";

const namespace = "a".repeat(32);
const idOf = (n: number): string => n.toString(16).padStart(64, "0");
const nameOf = (n: number): string => `${idOf(n)}.1.sqlite`;
let root = "";
let followed: FollowedFiles;
let folders: WatchedFolders;
let wasReported = false;
let opened: DatabaseSync[] = [];
const pathOf = (name: string): string => join(root, namespace, name);

function open(n: number): DatabaseSync {
  const database = new DatabaseSync(pathOf(nameOf(n)));
  database.exec("pragma journal_mode = wal; pragma synchronous = off; create table t (n integer)");
  opened.push(database);
  return database;
}
const write = (database: DatabaseSync, times = 1): void => {
  for (let i = 0; i < times; i++) database.exec("insert into t values (1)");
};

/** Looks, reads the logs of the files that were found, and returns their names. */
function look(): string[] {
  wasReported = false;
  const found = folders.look();
  for (const file of found.filter(({ name }) => name.endsWith(".sqlite"))) {
    let known = followed.get(file);
    if (known === undefined) {
      const options = { file, path: pathOf(file.name), state: undefined };
      known = new FollowedFile(options, new Stamps(noStamp), ({ kind, bytes, pageBytes }) => {
        if (kind === "frames") folders.noteFrames(namespace, bytes.length / (pageBytes! + 24));
      });
      followed.add(known);
    }
    known.read();
  }
  return found.map(({ name }) => name);
}

/** Writes to two databases in turn, because the kernel merges equal reports, until the namespace is busy. Returns what was found. */
async function makeBusy(): Promise<string[]> {
  const databases = [open(8), open(9)];
  const found: string[] = [];
  await vi.waitFor(
    () => {
      for (let i = 0; i < 20; i++) for (const database of databases) write(database);
      found.push(...look());
      expect(folders.isBusy).toBe(true);
    },
    { interval: 10, timeout: 10_000 },
  );
  return found;
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "selvedge-watched-folders-"));
  mkdirSync(join(root, namespace));
  followed = new FollowedFiles();
  folders = new WatchedFolders(root, followed, () => (wasReported = true));
  folders.add(namespace);
});
afterEach(() => {
  folders.clear();
  for (const each of followed.all()) each.close();
  for (const each of opened) if (each.isOpen) each.close();
  opened = [];
  rmSync(root, { recursive: true });
});

it("finds what changes in a busy namespace, which the kernel does not report", async () => {
  const database = open(1);
  await makeBusy();
  look();
  wasReported = false;
  write(open(2));
  appendFileSync(pathOf(`${idOf(2)}.facets`), "x");
  expect(look()).toEqual(expect.arrayContaining([nameOf(1), nameOf(2), `${idOf(2)}.facets`]));
  write(database, 50);
  appendFileSync(pathOf(`${idOf(2)}.facets`), "y");
  expect(look()).toEqual(expect.arrayContaining([nameOf(1), nameOf(2), `${idOf(2)}.facets`]));
  write(database, 50);
  opened.at(-1)!.close();
  rmSync(pathOf(nameOf(2)));
  expect(look()).toEqual(expect.arrayContaining([nameOf(1), nameOf(2)]));
  expect(wasReported).toBe(false);
});

it("finds a database that was deleted before its namespace became busy", async () => {
  open(2).close();
  await vi.waitFor(() => expect(look()).toEqual([]));
  rmSync(pathOf(nameOf(2)));
  expect(await makeBusy()).toContain(nameOf(2));
});

it("watches a namespace again when it is calm, and misses nothing meanwhile", async () => {
  const database = open(1);
  await makeBusy();
  await vi.waitFor(() => {
    look();
    expect(folders.isBusy).toBe(false);
  });
  look();
  wasReported = false;
  write(database);
  await vi.waitFor(() => expect(wasReported).toBe(true));
  expect(look()).toEqual([nameOf(1)]);
});

it("forgets a namespace whose folder was removed while it was busy", async () => {
  await makeBusy();
  rmSync(join(root, namespace), { recursive: true });
  await vi.waitFor(() => {
    look();
    expect(folders.namespaces).toEqual([]);
  });
  expect(folders.isBusy).toBe(false);
});
