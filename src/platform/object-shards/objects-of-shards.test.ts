import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, it, onTestFinished } from "vitest";
import { Catalog, contentsOf } from "../object-log/catalog.ts";
import type { OpenObjectLog } from "../object-log/open-object-log.ts";
import { writeSegment } from "../object-log/segment.ts";
import { FolderArchive } from "../storage/archive/folder.ts";
import { KnownShards } from "./known-shards.ts";
import { ObjectsOfShards, type ObjectsHere } from "./objects-of-shards.ts";
import { ShardGiven } from "./restore-object.ts";

const namespaceOf = (shard: number): string => shard.toString(16).padStart(8, "0").padEnd(32, "0");
const id = "b".repeat(64);
const taken = (...shards: number[]) => shards.map((shard) => ({ shard, term: 1, last: null }));

/** A node that has shards 1 and 2, with an object in the log of each, and a store that answers when the test says so. */
async function startNode() {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-shards-"));
  const catalog = new Catalog(join(folder, "catalog.db"));
  onTestFinished(() => {
    catalog.close();
    rmSync(folder, { recursive: true });
  });
  const files = new FolderArchive(join(folder, "store"));
  const entries = [1, 2].map((shard) => ({
    ...{ namespace: namespaceOf(shard), name: `${id}.sqlite`, kind: "base" as const },
    ...{
      start: "1".padStart(16, "0"),
      stamp: "2".padStart(16, "0"),
      bytes: Buffer.from(`database ${shard}`),
    },
  }));
  const path = await writeSegment(files, 1, entries);
  catalog.add({ number: 1, path, stamp: entries[0]!.stamp }, contentsOf(entries));
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  class SlowStore extends FolderArchive {
    override async read(at: string): ReturnType<FolderArchive["read"]> {
      asked.resolve();
      await answered.promise;
      return super.read(at);
    }
  }
  const store = new SlowStore(join(folder, "store"));
  const objects = join(folder, "objects");
  const nothing = async (): Promise<void> => {};
  const log = {
    ...{ catalog, files: store, folder: objects, sync: nothing },
    log: { catchUp: nothing, whenShipped: nothing, reset() {} },
  } as unknown as OpenObjectLog;
  const here: ObjectsHere = {
    ...{ end: nothing, store: nothing, removeFolder: nothing, load: nothing, forget() {} },
    running: () => [],
    folders: async () => [],
    existing: async (all) => new Set(all),
    createFolder: async (namespace) => void mkdirSync(join(objects, namespace), { recursive: true }),
  };
  const known = new KnownShards(join(folder, "known.json"));
  const shards = new ObjectsOfShards(log, here, known, pino({ level: "silent" }));
  await shards.adopt(taken(1, 2), 1);
  const filesOf = (shard: number): string[] => readdirSync(join(objects, namespaceOf(shard)));
  return { shards, asked: asked.promise, answer: () => answered.resolve(), filesOf };
}

it("an object is brought here while another shard is given to another node", async () => {
  const { shards, asked, answer, filesOf } = await startNode();
  const restored = shards.restore({ namespace: namespaceOf(1), id });
  await asked;
  await shards.leave(new Set([2]));
  answer();
  await restored;
  expect(filesOf(1)).toEqual([`${id}.sqlite`]);
});

it("an object of a shard that was given away is not placed, and comes again with its shard", async () => {
  const { shards, asked, answer, filesOf } = await startNode();
  const object = { namespace: namespaceOf(1), id };
  const first = shards.restore(object);
  await asked;
  await shards.leave(new Set([1]));
  await shards.adopt(taken(1), 1);
  const second = shards.restore(object);
  answer();
  await expect(first).rejects.toThrow(ShardGiven);
  await second;
  expect(filesOf(1)).toEqual([`${id}.sqlite`]);
  await shards.restore(object);
});
