import { createReadStream } from "node:fs";
import { mkdtemp, open, rm, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linesOf } from "../archive/parts.ts";
import type { Table } from "./model.ts";
import { blobOf, type Row } from "./rows.ts";

/** Lines of rows that name blobs, in temporary files, so that a backup does not read its own archive again. */
export class NamedRows implements AsyncDisposable {
  readonly #folder: string;
  readonly #opened = new Map<string, FileHandle>();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async create(): Promise<NamedRows> {
    return new NamedRows(await mkdtemp(join(tmpdir(), "selvedge-rows-")));
  }

  /** Keeps the line of a row if it names a blob. */
  async note(table: Table, row: Row, line: string): Promise<void> {
    if (blobOf(table, row) === null) return;
    let file = this.#opened.get(table.name);
    if (file === undefined) {
      file = await open(this.#path(table), "wx", 0o600);
      this.#opened.set(table.name, file);
    }
    await file.appendFile(line);
  }

  async *linesOf(table: Table): AsyncGenerator<string> {
    if (this.#opened.has(table.name))
      yield* linesOf(createReadStream(this.#path(table)) as AsyncIterable<Buffer>);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const file of this.#opened.values()) await file.close();
    await rm(this.#folder, { recursive: true });
  }

  #path(table: Table): string {
    return join(this.#folder, table.name);
  }
}
