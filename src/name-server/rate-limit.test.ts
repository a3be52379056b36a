import { describe, expect, it } from "vitest";
import { ResponseRateLimit } from "./rate-limit.ts";

const count = (limit: ResponseRateLimit, address: string, kind: string, times: number, atMs = 0) => {
  const verdicts = { answer: 0, truncate: 0, drop: 0 };
  for (let index = 0; index < times; index++) verdicts[limit.check(address, kind, atMs)]++;
  return verdicts;
};

describe("like answers to one network", () => {
  it("are given so many times in a second; then every second one is short, the others are not given", () => {
    const limit = new ResponseRateLimit(10);
    expect(count(limit, "192.0.2.1", "k", 30)).toEqual({ answer: 10, truncate: 10, drop: 10 });
    expect(count(limit, "192.0.2.200", "k", 2)).toEqual({ answer: 0, truncate: 1, drop: 1 });
    expect(count(limit, "192.0.2.1", "k", 30, 500).answer).toBe(5);
  });

  it("are counted apart from other answers, and from other networks", () => {
    const limit = new ResponseRateLimit(10);
    count(limit, "192.0.2.1", "k", 30);
    expect(count(limit, "192.0.2.1", "other", 5).answer).toBe(5);
    expect(count(limit, "192.0.3.1", "k", 5).answer).toBe(5);
  });

  it("are those of a /56 with IPv6", () => {
    const limit = new ResponseRateLimit(10);
    count(limit, "2001:db8:0:1::1", "k", 30);
    expect(count(limit, "2001:db8:0:ff::2", "k", 5).answer).toBe(0);
    expect(count(limit, "2001:db8:0:100::2", "k", 5).answer).toBe(5);
  });
});

it("nothing is limited with a rate of 0, or on this machine", () => {
  expect(new ResponseRateLimit(0).isLimited("192.0.2.1")).toBe(false);
  expect(new ResponseRateLimit(1).isLimited("192.0.2.1")).toBe(true);
  for (const own of ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
    expect(new ResponseRateLimit(1).isLimited(own)).toBe(false);
});
