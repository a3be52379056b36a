import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { Catalog } from "../object-log/catalog.ts";
import { addPart, type LogPart } from "../object-log/shared-order.ts";
import { maxStamp } from "../object-log/stamps.ts";
import { writeState } from "../object-log/states.ts";
import type { Archive } from "../storage/archive/archive.ts";
import { BackupError } from "../storage/archive/errors.ts";
import type { ObjectFilesToCopy } from "../storage/backup/copy-objects.ts";
import { sharedTable } from "../storage/backup/model.ts";
import type { Snapshot, Source } from "../storage/backup/source.ts";
import type { ObjectFile } from "../storage/live-files/object-files.ts";

const logTable = sharedTable("object_log", [
  { name: "number", type: "integer" },
  { name: "part", type: "text" },
]);

async function catalogOf(snapshot: Snapshot, path: string): Promise<Catalog> {
  const catalog = new Catalog(path);
  for await (const rows of snapshot.rows(logTable))
    for (const { number, part } of rows)
      addPart(catalog, number as number, JSON.parse(part as string) as LogPart);
  return catalog;
}

/** The objects of all nodes at one moment: that of a snapshot of PostgreSQL, which has the order of their log. */
export class ObjectsInLog implements ObjectFilesToCopy {
  readonly withGap: string[] = [];
  readonly #catalog: Catalog;
  readonly #files: Archive;
  readonly #aside: string;
  readonly #source: Source;
  #later: Promise<Catalog> | undefined;

  private constructor(catalog: Catalog, files: Archive, aside: string, source: Source) {
    this.#catalog = catalog;
    this.#files = files;
    this.#aside = aside;
    this.#source = source;
  }

  /** `files`: those of the log. `aside`: an empty folder. */
  static async at(snapshot: Snapshot, files: Archive, aside: string, source: Source): Promise<ObjectsInLog> {
    return new ObjectsInLog(await catalogOf(snapshot, join(aside, "catalog.db")), files, aside, source);
  }

  /** The files that were not deleted. */
  files(): ObjectFile[] {
    return this.#catalog.files().filter((file) => this.#catalog.baseOf(file, maxStamp)?.isGone === false);
  }

  async copy(file: ObjectFile, to: string, bytesMin: number): Promise<boolean> {
    const wanted = { to, takesEarlier: () => this.withGap.push(file.name) };
    try {
      await writeState({ catalog: this.#catalog, files: this.#files }, file, maxStamp, wanted);
    } catch (error) {
      if (!(error instanceof BackupError)) throw error;
      // A node may have replaced parts by a newer base meanwhile.
      const at = this.#catalog.lastChangeOf(file) ?? maxStamp;
      this.#later ??= this.#source.snapshot(async (snapshot) =>
        catalogOf(snapshot, join(this.#aside, "later.db")),
      );
      await writeState({ catalog: await this.#later, files: this.#files }, file, at, wanted);
    }
    return (await stat(to)).size >= bytesMin;
  }

  async contentOf(file: ObjectFile): Promise<Buffer> {
    const to = join(this.#aside, "content");
    await this.copy(file, to, 0);
    return readFile(to);
  }

  async close(): Promise<void> {
    this.#catalog.close();
    (await this.#later?.catch(() => undefined))?.close();
  }
}
