import { randomUUID } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import type { Storage } from "../storage.ts";
import { missing } from "./incoming.ts";

/** The location of an installation's blobs, as the database records it. */
export interface BlobLocation {
  /** `files`, `files:FOLDER_ID`, `postgres`, or `s3://BUCKET/PREFIX`. */
  id: string;
  /** The location in messages for the operator. */
  shown: string;
}

/**
 * The location of blobs in a folder. SQLite is in the data folder too, so both move together; with PostgreSQL, the
 * id of the folder distinguishes it from those of other nodes.
 */
export async function locationOfFiles(engine: Storage["engine"], folder: string): Promise<BlobLocation> {
  if (engine === "sqlite") return { id: "files", shown: "files" };
  const path = join(folder, "id");
  let id = await readFile(path, "utf8").catch(missing);
  if (id === undefined) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(path, (id = randomUUID()), { mode: 0o600, flush: true });
  }
  return { id: `files:${id.trim()}`, shown: `${hostname()}:${resolve(folder)}` };
}

/** Records the location at the first start. Returns the recorded location. */
export async function claimLocation(storage: Storage, location: BlobLocation): Promise<BlobLocation> {
  const find = async (): Promise<BlobLocation | undefined> =>
    storage.read.selectFrom("blob_place").select(["id", "shown"]).executeTakeFirst();
  const found = await find();
  if (found !== undefined) return found;
  await storage.write((trx) =>
    trx
      .insertInto("blob_place")
      .values({ of: "blobs", ...location })
      .onConflict((conflict) => conflict.doNothing())
      .execute(),
  );
  return (await find())!;
}

/** Records the location of the blobs for all later starts on this database. */
export async function recordLocation(storage: Storage, location: BlobLocation): Promise<void> {
  await storage.write((trx) =>
    trx
      .insertInto("blob_place")
      .values({ of: "blobs", ...location })
      .onConflict((conflict) => conflict.column("of").doUpdateSet(location))
      .execute(),
  );
}
