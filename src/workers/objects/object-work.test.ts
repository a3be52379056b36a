import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { apiErrorOf } from "../../control/api/errors.ts";
import { overloadedCells } from "../../sandbox/objects/faults.ts";
import { scriptErrorCodes } from "../scripts/api-errors.ts";
import { AtOwner } from "./nodes/at-owner.ts";
import { objectWork } from "./object-work.ts";

const idOf = (n: number): string => n.toString(16).padStart(64, "0");

it("brings the files of at most 200 objects for one page of a list", async () => {
  const path = mkdtempSync(join(tmpdir(), "selvedge-objects-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  mkdirSync(join(path, "space"));
  const logged = Array.from({ length: 500 }, (_, n) => idOf(n + 1));
  let brought = 0;
  const files = {
    restore: async () => {},
    async restorePage(_: string, { limit, cursor = "" }: { limit: number; cursor?: string | undefined }) {
      const left = logged.filter((id) => id > cursor);
      const page = left.slice(0, limit);
      for (const id of page) writeFileSync(join(path, "space", `${id}.1.sqlite`), Buffer.alloc(8192));
      brought += page.length;
      return left.length > page.length ? page.at(-1) : undefined;
    },
  };
  const parts = { folders: { path }, files } as unknown as Parameters<typeof objectWork>[1];
  const { list } = objectWork(new AtOwner(undefined, undefined), parts);
  const first = await list({ namespace: "space", limit: 10_000, cursor: undefined });
  expect(brought).toBe(200);
  expect(first.objects.map(({ id }) => id)).toEqual(logged.slice(0, 200));
  const second = await list({ namespace: "space", limit: 10_000, cursor: first.next });
  expect(second.objects[0]!.id).toBe(logged[200]);
});

it("lists the objects that are only in the log, also behind many that were deleted", async () => {
  const path = mkdtempSync(join(tmpdir(), "selvedge-objects-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  mkdirSync(join(path, "space"));
  const bring = (id: string): void =>
    writeFileSync(join(path, "space", `${id}.1.sqlite`), Buffer.alloc(8192));
  bring(idOf(99)); // is here already
  const logged = Array.from({ length: 50 }, (_, n) => idOf(n + 1));
  const files = {
    restore: async () => {},
    async restorePage(_: string, { limit, cursor = "" }: { limit: number; cursor?: string | undefined }) {
      const left = logged.filter((id) => id > cursor);
      const page = left.slice(0, limit);
      for (const id of page) if (id > idOf(30)) bring(id); // the others were deleted
      return left.length > page.length ? page.at(-1) : undefined;
    },
  };
  const parts = { folders: { path }, files } as unknown as Parameters<typeof objectWork>[1];
  const { list } = objectWork(new AtOwner(undefined, undefined), parts);
  const found: string[] = [];
  for (let cursor: string | undefined; ;) {
    const { objects, next } = await list({ namespace: "space", limit: 10, cursor });
    found.push(...objects.map(({ id }) => id));
    if (next === undefined) break;
    cursor = next;
  }
  expect(found).toEqual([...logged.slice(30), idOf(99)]);
});

it("tells callers of the API to try again if the objects are moving to another node", async () => {
  const files = { restore: async () => Promise.reject(overloadedCells()) };
  const parts = { folders: { path: tmpdir() }, files } as unknown as Parameters<typeof objectWork>[1];
  const { remove } = objectWork(new AtOwner(undefined, undefined), parts);
  const error: unknown = await remove({ namespace: "space", id: idOf(1) }).catch((thrown: unknown) => thrown);
  expect(apiErrorOf(error, scriptErrorCodes)).toMatchObject({
    status: 503,
    code: 10512,
    message: `${overloadedCells().message} Try again in 1 second`,
    retryAfterSeconds: 1,
  });
});
