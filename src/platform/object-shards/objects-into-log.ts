import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sql } from "kysely";
import { contentPath, markBase } from "../object-log/bases.ts";
import { contentsOf } from "../object-log/catalog.ts";
import { smallBytes } from "../object-log/make-base.ts";
import { writeSegment, type Entry } from "../object-log/segment.ts";
import { canonicalText, type LogPart } from "../object-log/shared-order.ts";
import { markStore, storeKey } from "../object-log/shared-store.ts";
import { noStamp, Stamps } from "../object-log/stamps.ts";
import type { Archive } from "../storage/archive/archive.ts";
import { compressed, writePart } from "../storage/archive/parts.ts";
import type { RestoredObjectFiles } from "../storage/backup/copy-objects.ts";
import type { ObjectFile } from "../storage/live-files/object-files.ts";
import type { Read } from "../storage/storage.ts";

const segmentBytes = 8 * 1024 * 1024;

interface Parts {
  /** The database, which no node uses yet. */
  read: Read;
  /** The files of the log, perhaps encrypted. */
  files: Archive;
  /** The store of archives that has it. */
  archives: Archive;
  /** An empty folder. */
  aside: string;
}

/**
 * Writes objects into the log that nodes share: each node that starts later has them. The store gets its mark last, so
 * that an interrupted restore can be repeated there.
 */
export class ObjectsIntoLog implements RestoredObjectFiles {
  readonly #parts: Parts;
  readonly #stamps = new Stamps(noStamp);
  #entries: Entry[] = [];
  #bytes = 0;
  #number = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async write(file: ObjectFile, content: AsyncIterable<Uint8Array>): Promise<void> {
    const path = join(this.#parts.aside, "object");
    await writeFile(path, content);
    const { size } = await stat(path);
    const stamp = this.#stamps.next();
    if (size > smallBytes) return this.#writeBase(file, stamp, path);
    this.#entries.push({ ...file, kind: "base", start: stamp, stamp, bytes: await readFile(path) });
    this.#bytes += size;
    if (this.#bytes > segmentBytes) await this.#writeSegment();
  }

  async complete(): Promise<void> {
    if (this.#entries.length > 0) await this.#writeSegment();
    const { read, archives } = this.#parts;
    await sql`update object_log_head set number = ${this.#number}`.execute(read);
    const mark = await markStore(archives);
    await sql`insert into node_values (name, value) values (${storeKey}, ${mark})`.execute(read);
  }

  async #writeBase(file: ObjectFile, stamp: string, path: string): Promise<void> {
    const { files } = this.#parts;
    const target = contentPath(file, stamp, randomBytes(4).toString("hex"));
    const part = await writePart(files, target, compressed(createReadStream(path)));
    const base = { ...file, start: stamp, stamp, part };
    await markBase(files, base);
    await this.#add({ base });
  }

  async #writeSegment(): Promise<void> {
    const entries = this.#entries.splice(0);
    this.#bytes = 0;
    const path = await writeSegment(this.#parts.files, this.#number + 1, entries);
    await this.#add({ segment: { path, stamp: entries.at(-1)!.stamp, ...contentsOf(entries) } });
  }

  async #add(part: LogPart): Promise<void> {
    await sql`insert into object_log (number, part) values (${++this.#number}, ${canonicalText(part)})`.execute(
      this.#parts.read,
    );
  }
}
