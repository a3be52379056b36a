import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ObjectRefusal } from "../errors.ts";
import { ObjectSizes } from "./object-sizes.ts";

const namespace = "a".repeat(32);
const [read, written] = ["b", "c"].map((digit) => ({ namespace, id: digit.repeat(64) }));

it("the first look at a full account ends no object that is only read, and the next ones those that have grown", async () => {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-sizes-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, namespace));
  const write = (id: string, bytes: number): void =>
    writeFileSync(join(folder, namespace, `${id}.1.sqlite`), Buffer.alloc(bytes));
  const ended: string[] = [];
  const sizes = new ObjectSizes({
    folder,
    limits: { objectBytesMax: 10_000, accountBytesMax: 1000 },
    accountOf: () => "account",
    namespacesOf: () => [namespace],
    end: async ({ id }) => void ended.push(id),
  });
  for (const { id } of [read!, written!]) write(id, 2000);
  let now = performance.now();
  const look = async (): Promise<void> => {
    for (const object of [read!, written!])
      try {
        sizes.use(object);
      } catch (error) {
        expect(error).toBeInstanceOf(ObjectRefusal);
      }
    await sizes.checkIfDue((now += 10_000), () => []);
  };
  await look();
  expect(ended).toEqual([]);
  expect(() => sizes.use(written!)).not.toThrow();
  write(written!.id, 3000);
  await look();
  expect(ended).toEqual([written!.id]);
  expect(() => sizes.use(written!)).toThrow(ObjectRefusal);
  expect(() => sizes.use(read!)).not.toThrow();
});
