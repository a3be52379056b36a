import { describe, expect, it } from "vitest";
import { ResponseRateLimit } from "./rate-limit.ts";

const count = (limit: ResponseRateLimit, address: string, kind: string, times: number, atMs = 0) => {
  const actions = { answer: 0, truncate: 0, drop: 0 };
  for (let index = 0; index < times; index++) actions[limit.check(address, kind, atMs)]++;
  return actions;
};

describe("similar responses to one network", () => {
  it("are limited per second; then every second one is truncated and the others are dropped", () => {
    const limit = new ResponseRateLimit(10);
    expect(count(limit, "192.0.2.1", "k", 30)).toEqual({ answer: 10, truncate: 10, drop: 10 });
    expect(count(limit, "192.0.2.200", "k", 2)).toEqual({ answer: 0, truncate: 1, drop: 1 });
    expect(count(limit, "192.0.2.1", "k", 30, 500).answer).toBe(5);
  });

  it("are counted separately from other responses and other networks", () => {
    const limit = new ResponseRateLimit(10);
    count(limit, "192.0.2.1", "k", 30);
    expect(count(limit, "192.0.2.1", "other", 5).answer).toBe(5);
    expect(count(limit, "192.0.3.1", "k", 5).answer).toBe(5);
  });

  it("are counted by /56 for IPv6", () => {
    const limit = new ResponseRateLimit(10);
    count(limit, "2001:db8:0:1::1", "k", 30);
    expect(count(limit, "2001:db8:0:ff::2", "k", 5).answer).toBe(0);
    expect(count(limit, "2001:db8:0:100::2", "k", 5).answer).toBe(5);
  });
});

it("nothing is limited with a rate of 0, or from loopback addresses", () => {
  expect(new ResponseRateLimit(0).isLimited("192.0.2.1")).toBe(false);
  expect(new ResponseRateLimit(1).isLimited("192.0.2.1")).toBe(true);
  for (const own of ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
    expect(new ResponseRateLimit(1).isLimited(own)).toBe(false);
});
