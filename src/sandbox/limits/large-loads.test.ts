import { expect, it } from "vitest";
import { LargeLoads } from "./large-loads.ts";
import type { CellScript } from "../process/script.ts";

const script = (accountId: string, bytes: number): CellScript =>
  ({ accountId, modules: [{ name: "data", kind: "data", content: new Uint8Array(bytes) }] }) as never;
const large = 1024 * 1024;

it("loads one large script of an account at a time, and makes no one else wait", async () => {
  const loads = new LargeLoads(60_000);
  const order: string[] = [];
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const load = async (name: string, of: CellScript, until?: Promise<void>): Promise<void> =>
    loads.run(of, async () => {
      order.push(name);
      await until;
    });
  const all = [
    load("first", script("a", large), first.promise),
    load("second", script("a", large), second.promise),
    load("third", script("a", large)),
    load("small", script("a", 10)),
    load("of another", script("b", large)),
  ];
  await Promise.all(all.slice(3));
  expect(order).toEqual(["small", "first", "of another"]);
  first.resolve();
  await all[0];
  second.resolve();
  await Promise.all(all);
  expect(order).toEqual(["small", "first", "of another", "second", "third"]);
  await load("again", script("a", large));
  expect(order.at(-1)).toBe("again");
});

it("goes on after a failed load, and beside a slow one", async () => {
  const loads = new LargeLoads(10);
  const failing = loads.run(script("a", large), async () => Promise.reject(new Error("no")));
  const never = Promise.withResolvers<void>();
  const stuck = loads.run(script("a", large), async () => never.promise);
  const next = loads.run(script("a", large), async () => "next");
  await expect(failing).rejects.toThrow("no");
  expect(await next).toBe("next");
  never.resolve();
  await stuck;
});
