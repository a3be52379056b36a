import { expect, it } from "vitest";
import { Linger } from "./linger.ts";

it("keeps values until they expire, and the last one for a key", () => {
  const linger = new Linger<number>(5000);
  for (const at of [0, 400, 999, 1500, 5900]) linger.put(`at ${at}`, at, at);
  const kept = (now: number): (number | undefined)[] =>
    [0, 400, 999, 1500, 5900].map((at) => linger.get(`at ${at}`, now));
  expect(kept(6000)).toEqual([0, 400, 999, 1500, 5900]);
  linger.put("at 400", 401, 6000);
  expect(kept(6001)).toEqual([undefined, 401, undefined, 1500, 5900]);
  expect(kept(60_000)).toEqual(Array.from({ length: 5 }));
});
