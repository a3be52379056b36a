import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FolderArchive } from "../storage/archive/folder.ts";
import { chunksOf, readEntries, writeSegment, type Entry } from "./segment.ts";

let folder = "";
let files: FolderArchive;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-segment-"));
  files = new FolderArchive(folder);
});
afterEach(() => rmSync(folder, { recursive: true }));

const stamp = "00000000000000ff";
const entry: Entry = {
  namespace: "a".repeat(32),
  name: `${"b".repeat(64)}.1.sqlite`,
  kind: "frames",
  stamp,
  salt: "0011223344556677",
  first: 1,
  pageBytes: 4096,
  pages: 2,
  bytes: Buffer.from("frames"),
};

/** Writes a segment with any content, whose digest is right. */
async function forge(content: Buffer): Promise<string> {
  const bytes = zstdCompressSync(content);
  const digest = createHash("sha256").update(bytes).digest("hex").slice(0, 32);
  const path = `object-log/segments/000000/0000000001-${stamp}-${digest}.zst`;
  await files.write(path, chunksOf(bytes));
  return path;
}
function contentOf(header: string, rest = ""): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(Buffer.byteLength(header));
  return Buffer.concat([length, Buffer.from(header + rest)]);
}

it("a segment is read as it was written", async () => {
  const entries = [entry, { ...entry, kind: "gone" as const, bytes: Buffer.alloc(0) }];
  const path = await writeSegment(files, 1, entries);
  expect(await readEntries(files, path)).toEqual(entries);
});

const { bytes: _, ...header } = entry;
const forged = { ...header, length: 4 };
it.each<[string, Buffer]>([
  ["a folder above", contentOf(JSON.stringify([{ ...forged, namespace: "../../" }]), "rest")],
  ["a file that is no database", contentOf(JSON.stringify([{ ...forged, name: "victim.txt" }]), "rest")],
  ["a path as a name", contentOf(JSON.stringify([{ ...forged, name: `../${entry.name}` }]), "rest")],
  ["another kind", contentOf(JSON.stringify([{ ...forged, kind: "other" }]), "rest")],
  ["another form of a stamp", contentOf(JSON.stringify([{ ...forged, stamp: "now" }]), "rest")],
  ["a page size that SQLite does not have", contentOf(JSON.stringify([{ ...forged, pageBytes: 3 }]), "rest")],
  ["a negative length", contentOf(JSON.stringify([{ ...forged, length: -4 }]), "rest")],
  ["fewer bytes than its entries", contentOf(JSON.stringify([forged]), "re")],
  ["more bytes than its entries", contentOf(JSON.stringify([forged]), "rest and more")],
  ["no entries", contentOf("[]")],
  ["no JSON", contentOf("[", "rest")],
  ["a header that is longer than the segment", Buffer.from([255, 255, 255, 255])],
  ["nothing", Buffer.alloc(0)],
  ["more than a segment may have", Buffer.alloc(129 * 1024 * 1024)],
])("a segment with %s is refused by its name, although its digest is right", async (_what, content) => {
  const path = await forge(content);
  await expect(readEntries(files, path)).rejects.toThrow(`The backup is damaged: ${path}`);
});
