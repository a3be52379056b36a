import { sql } from "kysely";
import { afterEach, expect, it } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { nothingToReload } from "./changes/listeners.ts";
import type { Change, Storage } from "./storage.ts";
import { isUniqueViolation } from "./dialects.ts";
import { DatabaseUnavailable } from "./faults.ts";

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

  it("rolls back a transaction that throws, and does not notify listeners", async () => {
    const storage = await fresh();
    const seen: Change[] = [];
    storage.onChange(async (changes) => void seen.push(...changes), nothingToReload);
    const failing = storage.write(async (trx, changed) => {
      await trx.insertInto("meta").values({ key: "a", value: "v" }).execute();
      changed({ kind: "zone", id: "a" });
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    expect(await keys(storage)).toEqual([]);
    expect(seen).toEqual([]);
  });

  it("has notified every listener when a write resolves", async () => {
    const storage = await fresh();
    const seen: Change[] = [];
    storage.onChange(async (changes) => void seen.push(...changes), nothingToReload);
    await storage.write(async (_trx, changed) =>
      changed({ kind: "dns_record", id: "www.example.com", parentId: "z" }),
    );
    expect(seen).toEqual([{ kind: "dns_record", id: "www.example.com", parentId: "z" }]);
  });

  it("notifies all listeners again of a commit that one of them failed to handle", async () => {
    const storage = await fresh();
    const seen: string[] = [];
    let faults = 2;
    storage.onChange(async () => {
      if (faults-- > 0) throw new Error("the listener could not read");
      seen.push("first");
    }, nothingToReload);
    storage.onChange(async () => void seen.push("second"), nothingToReload);
    const writing = storage.write(async (trx, changed) => {
      await trx.insertInto("meta").values({ key: "a", value: "v" }).execute();
      changed({ kind: "zone", id: "a" });
    });
    await expect(writing).rejects.toThrow("could not read");
    expect([seen, await keys(storage)]).toEqual([["second"], ["a"]]);
    await expect.poll(() => seen).toEqual(["second", "second", "first", "second"]);
  });

  it("rejects with the first error if the rollback fails too", async () => {
    const storage = await fresh();
    const failing = storage.write(async (trx) => {
      await sql`rollback`.execute(trx);
      if (storage.engine === "postgres")
        await sql`select pg_terminate_backend(pg_backend_pid())`.execute(trx);
      throw new Error("the first error");
    });
    await expect(failing).rejects.toThrow(
      storage.engine === "postgres" ? DatabaseUnavailable : "the first error",
    );
    await put(storage, "a");
    expect(await keys(storage)).toEqual(["a"]);
  });

  it("calls listeners with one batch at a time, so that older rows never replace newer ones", async () => {
    const storage = await fresh();
    const known = new Map<string, string>();
    const calls: string[][] = [];
    const first = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    storage.onChange(async (changes) => {
      calls.push(changes.map(({ id }) => id));
      const rows = await storage.read.selectFrom("meta").selectAll().execute();
      if (calls.length === 1) {
        arrived.resolve();
        await first.promise; // the database responds late
      }
      known.clear();
      for (const { key, value } of rows) known.set(key, value);
    }, nothingToReload);
    const add = async (key: string): Promise<unknown> =>
      storage.write(async (trx, changed) => {
        await trx.insertInto("meta").values({ key, value: "v" }).execute();
        changed({ kind: "zone", id: key });
      });
    const remove = async (key: string): Promise<unknown> =>
      storage.write(async (trx, changed) => {
        await trx.deleteFrom("meta").where("key", "=", key).execute();
        changed({ kind: "zone", id: key });
      });
    const adding = add("a");
    await arrived.promise;
    const later = [remove("a"), add("b"), add("c")];
    while ((await keys(storage)).join() !== "b,c") await new Promise((resolve) => setImmediate(resolve));
    first.resolve();
    await Promise.all([adding, ...later]);
    expect([...known.keys()].toSorted()).toEqual(["b", "c"]);
    expect(calls[0]).toEqual(["a"]);
    expect(calls.slice(1).flat().toSorted()).toEqual(["a", "b", "c"]);
  });

  it("lets a listener await its own writes", async () => {
    const storage = await fresh();
    const seen: string[] = [];
    storage.onChange(async (changes) => {
      for (const { id } of changes) {
        seen.push(id);
        if (id === "outer")
          await storage.write(async (_trx, changed) => changed({ kind: "zone", id: "inner" }));
      }
      seen.push("done");
    }, nothingToReload);
    await storage.write(async (_trx, changed) => changed({ kind: "zone", id: "outer" }));
    expect(seen).toEqual(["outer", "inner", "done", "done"]);
  });

  it("recognises a violated unique constraint", async () => {
    const storage = await fresh();
    await put(storage, "a");
    await expect(put(storage, "a")).rejects.toSatisfy(isUniqueViolation);
  });

  it("isolates concurrent writes", async () => {
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
