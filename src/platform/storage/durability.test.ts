import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { walDurability } from "./durability.ts";
import { openSqlite } from "./sqlite.ts";

it("rewrites the log after a failed fdatasync, before any commit counts as durable again", async () => {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-durability-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "test.db");
  const database = openSqlite(path);
  database.exec("create table t (a integer)");
  let isBroken = true;
  let syncs = 0;
  const durability = await walDurability(path, async () => {
    syncs += 1;
    if (isBroken) throw Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
  });
  database.exec("insert into t values (1)");
  await expect(durability.flush()).rejects.toThrow("EIO");
  expect(statSync(`${path}-wal`).size).toBeGreaterThan(0);

  isBroken = false;
  await durability.flush();
  expect([syncs, statSync(`${path}-wal`).size]).toEqual([1, 0]);
  database.exec("insert into t values (3)");
  await durability.flush();
  expect(syncs).toBe(2);
  await durability.close();
  expect(database.prepare("select a from t order by a").all()).toEqual([{ a: 1 }, { a: 3 }]);
  database.close();
});
