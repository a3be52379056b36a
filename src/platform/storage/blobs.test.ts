import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { beforeEach, expect, it } from "vitest";
import { FileBlobs } from "./blobs.ts";

let folder: string;
let blobs: FileBlobs;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-blobs-"));
  blobs = new FileBlobs(folder);
});
const read = async (key: string, range?: { start: number; end: number }): Promise<string | undefined> => {
  const blob = await blobs.get(key, range);
  return blob === undefined ? undefined : (await buffer(blob.stream)).toString();
};

it("returns stored content as a whole and in part", async () => {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("hello ");
    yield Buffer.from("world");
  }
  expect(await blobs.put("a/b", chunks())).toEqual({ sizeBytes: 11 });
  expect(await read("a/b")).toBe("hello world");
  expect(await read("a/b", { start: 4, end: 6 })).toBe("o w");
  expect(await blobs.head("a/b")).toEqual({ sizeBytes: 11 });
});

it("replaces and deletes content, and reports missing content", async () => {
  await blobs.put("k", Buffer.from("one"));
  await blobs.put("k", Buffer.from("two"));
  expect(await read("k")).toBe("two");
  await blobs.delete("k");
  await blobs.delete("k");
  expect(await read("k")).toBeUndefined();
  expect(await blobs.head("k")).toBeUndefined();
  await blobs.put("empty", Buffer.alloc(0));
  expect(await read("empty")).toBe("");
});

it("leaves no file behind if the content fails midway", async () => {
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("half");
    throw new Error("the sender left");
  }
  await expect(blobs.put("k", broken())).rejects.toThrow("the sender left");
  expect(await blobs.head("k")).toBeUndefined();
  expect(readdirSync(join(folder, "incoming"))).toEqual([]);
});

it.each(["../x", "a/../x", "/etc/passwd", "", "a//b", ".hidden", "a/\0"])(
  "rejects the key %j",
  async (key) => {
    await expect(blobs.put(key, Buffer.from("x"))).rejects.toThrow("not a blob key");
  },
);
