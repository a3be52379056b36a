import { afterEach, expect, it } from "vitest";
import { describeStorage } from "../../test/helpers/storage-matrix.ts";
import type { Change, Storage } from "./storage.ts";
import { isUniqueViolation } from "./dialects.ts";

describeStorage("storage", (open) => {
  const opened: Storage[] = [];
  const fresh = async (): Promise<Storage> => {
    const storage = await open();
    opened.push(storage);
    return storage;
  };
  afterEach(async () => {
    for (const storage of opened.splice(0)) await storage.close();
  });
  const put = (storage: Storage, key: string): Promise<unknown> =>
    storage.write(async (trx) => trx.insertInto("meta").values({ key, value: "v" }).execute());
  const keys = async (storage: Storage): Promise<string[]> =>
    (await storage.read.selectFrom("meta").select("key").orderBy("key").execute()).map((row) => row.key);

  it("undoes a transaction that throws, and tells nobody of its changes", async () => {
    const storage = await fresh();
    const seen: Change[] = [];
    storage.onChange(async (changes) => void seen.push(...changes));
    const failing = storage.write(async (trx, changed) => {
      await trx.insertInto("meta").values({ key: "a", value: "v" }).execute();
      changed({ kind: "zone", id: "a" });
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(await keys(storage)).toEqual([]);
    expect(seen).toEqual([]);
  });

  it("has told every listener when a write resolves", async () => {
    const storage = await fresh();
    const seen: Change[] = [];
    storage.onChange(async (changes) => void seen.push(...changes));
    await storage.write(async (_trx, changed) =>
      changed({ kind: "dns_record", id: "www.example.com", parentId: "z" }),
    );
    expect(seen).toEqual([{ kind: "dns_record", id: "www.example.com", parentId: "z" }]);
  });

  it("recognises a violated unique constraint", async () => {
    const storage = await fresh();
    await put(storage, "a");
    await expect(put(storage, "a")).rejects.toSatisfy(isUniqueViolation);
  });

  it("keeps concurrent writes apart", async () => {
    const storage = await fresh();
    await Promise.all(
      Array.from({ length: 50 }, (_, i) => put(storage, `key-${String(i).padStart(2, "0")}`)),
    );
    expect(await keys(storage)).toHaveLength(50);
  });

  it("returns 64-bit times as numbers", async () => {
    const storage = await fresh();
    const created_on = 1_790_000_000_123;
    await storage.write(async (trx) =>
      trx
        .insertInto("accounts")
        .values({ id: "a", name: "A", type: "standard", settings: "{}", has_billing: 1, created_on })
        .execute(),
    );
    const row = await storage.read.selectFrom("accounts").selectAll().executeTakeFirstOrThrow();
    expect(row.created_on).toBe(created_on);
  });
});
