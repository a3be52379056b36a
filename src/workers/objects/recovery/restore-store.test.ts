import { expect, it, onTestFinished } from "vitest";
import { stampAt } from "../../../platform/object-log/stamps.ts";
import { openStorage } from "../../../platform/storage/storage.ts";
import { newId } from "../../../platform/util/ids.ts";
import { put } from "../store.ts";
import { AwaitedRestores } from "./restore-store.ts";

it("a restore that took place on another node is not awaited when its namespace comes back", async () => {
  const storage = await openStorage("sqlite::memory:");
  onTestFinished(() => storage.close());
  const accountId = newId();
  await storage.write(async (trx) => {
    await trx
      .insertInto("accounts")
      .values({ id: accountId, name: "A", type: "standard", settings: "{}", has_billing: 0, created_on: 0 })
      .execute();
    for (const id of ["moved", "kept"])
      await put(trx, { id, accountId, scriptId: null, className: id, isSqlite: true, createdOn: 0 });
  });
  const [first, second] = [new AwaitedRestores(storage), new AwaitedRestores(storage)];
  const [moved, kept] = ["moved", "kept"].map((namespace) => ({ namespace, id: "1" }));
  const [target, undo] = [stampAt(1), stampAt(2)];
  for (const object of [moved!, kept!]) await first.put(object, { target, undo });
  await second.load();
  await second.end(moved!);
  expect(first.targetOf(moved!)).toBe(target);
  await first.load((namespace) => namespace === "moved");
  expect([first.targetOf(moved!), first.targetOf(kept!)]).toEqual([undefined, target]);
});
