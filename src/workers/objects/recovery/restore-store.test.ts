import { expect, it, onTestFinished } from "vitest";
import { addObjectNamespaces } from "../../../../test/helpers/object-namespaces.ts";
import { stampAt } from "../../../platform/object-log/stamps.ts";
import { openStorage } from "../../../platform/storage/storage.ts";
import { AwaitedRestores } from "./restore-store.ts";

it("a restore that took place on another node is not awaited when its namespace comes back", async () => {
  const storage = await openStorage("sqlite::memory:");
  onTestFinished(() => storage.close());
  await addObjectNamespaces(storage, ["moved", "kept"]);
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
