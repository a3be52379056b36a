import { expect, it } from "vitest";
import { LoadingCache } from "./loading-cache.ts";

it("loads a value once for all concurrent callers", async () => {
  const cache = new LoadingCache<string, number>();
  let loads = 0;
  const load = async (): Promise<number> => ++loads;
  expect(await Promise.all([cache.get("a", load), cache.get("a", load)])).toEqual([1, 1]);
  expect(await cache.get("a", load)).toBe(1);
});

it("caches neither missing values nor failures", async () => {
  const cache = new LoadingCache<string, number>();
  expect(await cache.get("a", async () => undefined)).toBeUndefined();
  await expect(cache.get("a", async () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(await cache.get("a", async () => 1)).toBe(1);
});

it("does not cache a value that was being loaded during a forget", async () => {
  const cache = new LoadingCache<string, string>();
  const before = Promise.withResolvers<string>();
  const early = cache.get("a", async () => before.promise);
  cache.forget((value) => value === "something else");
  const late = cache.get("a", async () => "after");
  expect(await late).toBe("after");
  before.resolve("before");
  expect(await early).toBe("before");
  expect(await cache.get("a", async () => "loaded again")).toBe("after");
});

it("forgets matching values only", async () => {
  const cache = new LoadingCache<number, string>();
  for (const number of [1, 2, 3]) await cache.get(number, async () => `value ${number}`);
  cache.forget((_value, key) => key === 2);
  expect([1, 2, 3].map((number) => cache.peek(number))).toEqual(["value 1", undefined, "value 3"]);
  cache.forget();
  expect(cache.peek(1)).toBeUndefined();
});
