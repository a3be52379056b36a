import { describe, expect, it } from "vitest";
import { Latency } from "./latency.ts";
import { OriginPath } from "./origin-path.ts";
import { PathGroup } from "./path-group.ts";

/** A path with identical samples. */
function path(name: string, ms: number, atMs = 0): OriginPath {
  const made = new OriginPath(name, undefined);
  for (let i = 0; i < 20; i++) made.latency.add(ms, atMs);
  return made;
}
const never = (): number => 0.99;

describe("latency", () => {
  it("rises at once and falls slowly", () => {
    const latency = new Latency();
    for (let i = 0; i < 3; i++) latency.add(100, i);
    for (let i = 3; i < 6; i++) latency.add(300, i);
    expect(latency.ms).toBe(300);
    for (let i = 6; i < 9; i++) latency.add(100, i);
    expect(latency.ms).toBeGreaterThan(299);
    latency.add(100, 30_000);
    expect(latency.ms).toBeLessThan(105);
  });

  it("ignores a single slow response and the first connection", () => {
    const latency = new Latency();
    latency.add(500, 0);
    latency.add(100, 1);
    expect(latency.ms).toBe(100);
    latency.add(100, 2);
    latency.add(2000, 3);
    expect(latency.ms).toBe(100);
  });
});

describe("the choice of a path", () => {
  it("is the fastest", () => {
    const group = new PathGroup([path("a", 100), path("b", 50)], never);
    expect(group.choose("a", true, 1)).toMatchObject({ path: { name: "b" }, kind: "best" });
  });

  it("stays on its path until another is better by a tenth and by 5 ms", () => {
    const [a, b, c] = [path("a", 100), path("b", 92), path("c", 80)];
    const group = new PathGroup([a], never);
    expect(group.choose("a", true, 1).path).toBe(a);
    const slow = new PathGroup([a, b], never);
    a.latency.add(1, 1); // no change after one sample
    expect(slow.choose("a", true, 1).path).toBe(b); // no path was in use before
    for (let i = 0; i < 20; i++) b.latency.add(105, 2);
    expect(slow.choose("a", true, 2).path).toBe(b);
    for (let i = 0; i < 20; i++) b.latency.add(120, 3);
    expect(slow.choose("a", true, 3).path).toBe(a);
    expect(new PathGroup([a, c], never).choose("a", true, 3).path).toBe(c);
  });

  it("leaves a path with waiting requests", () => {
    const [a, b] = [path("a", 50), path("b", 100)];
    const group = new PathGroup([a, b], never);
    expect(group.choose("a", true, 1).path).toBe(a);
    a.start(1);
    a.start(2);
    expect(group.choose("a", true, 90).path).toBe(a);
    expect(group.choose("a", true, 150).path).toBe(b);
  });

  it("keeps 2 % on the direct path, and explores rarely used paths", () => {
    const draws = [0.01, 0.025, 0.5];
    const group = new PathGroup([path("a", 100, 5), path("b", 50, 8000), path("c", 70, 7000)], () =>
      draws.shift()!,
    );
    expect(group.choose("a", true, 9000)).toMatchObject({ path: { name: "a" }, kind: "control" });
    expect(group.choose("a", true, 9000)).toMatchObject({ path: { name: "a" }, kind: "exploration" });
    expect(group.choose("a", true, 9000)).toMatchObject({ path: { name: "b" }, kind: "best" });
  });

  it("tries every path at first, but only with repeatable requests", () => {
    const paths = ["a", "b", "c"].map((name) => new OriginPath(name, undefined));
    const group = new PathGroup(paths, never);
    expect(group.choose("b", false, 1)).toMatchObject({ path: { name: "b" }, kind: "best" });
    expect(group.choose("b", true, 1)).toMatchObject({ path: { name: "a" }, kind: "exploration" });
    paths[0]!.start(1);
    expect(group.choose("b", true, 1)).toMatchObject({ path: { name: "c" }, kind: "exploration" });
  });
});

describe("paths that fail", () => {
  it("are excluded after 5 consecutive failures, for longer each time, but never more than half of them", () => {
    const paths = ["a", "b", "c", "d"].map((name) => path(name, 100));
    const group = new PathGroup(paths, never);
    const fail = (each: OriginPath, nowMs: number): void => {
      for (let i = 0; i < 5; i++) each.failed(each.start(nowMs), nowMs);
      group.review(each, nowMs);
    };
    for (const each of paths.slice(0, 3)) fail(each, 0);
    expect(paths.map((each) => each.isEjected(1))).toEqual([true, true, false, false]);
    expect(paths.map((each) => each.isEjected(30_001))).toEqual([false, false, false, false]);
    fail(paths[0]!, 40_000);
    expect(paths[0]!.isEjected(99_000)).toBe(true);
    expect(paths[0]!.isEjected(100_001)).toBe(false);
    expect(group.choose("a", true, 50_000).path.name).not.toBe("a");
  });

  it.each([
    ["measured", path("b", 100)],
    ["unmeasured", new OriginPath("b", undefined)],
  ])("are no longer current, also without a further request: the other path is %s", (_, other) => {
    const first = path("a", 50);
    const group = new PathGroup([first, other], never);
    expect(group.choose("a", false, 1).path).toBe(first);
    for (let i = 0; i < 5; i++) first.failed(first.start(2), 2);
    expect(group.review(first, 2)).toBe(true);
    expect(group.current).toBe(other);
    expect(group.choose("a", false, 3).path).toBe(other);
  });
});

it("a path that fails clearly more often than four others is excluded, also without consecutive failures", () => {
  const paths = ["a", "b", "c", "d", "e"].map((name) => path(name, 100));
  const group = new PathGroup(paths, never);
  const serve = (each: OriginPath, failsEvery: number): void => {
    for (let i = 1; i <= 100; i++) {
      if (i % failsEvery === 0) each.faulty();
      else each.succeeded();
    }
  };
  for (const each of paths) serve(each, 50);
  expect(paths.map((each) => group.review(each, 1))).toEqual([false, false, false, false, false]);
  serve(paths[2]!, 2);
  expect(paths.map((each) => group.review(each, 1))).toEqual([false, false, true, false, false]);
  // The path does not respond, so its exclusion is extended.
  paths[2]!.stayAway(60_000, 0);
  expect(paths[2]!.isEjected(59_999)).toBe(true);
  expect(paths[2]!.isEjected(60_001)).toBe(false);
});

it("hedges cost at most 5 % of the requests", () => {
  const group = new PathGroup([path("a", 100), path("b", 100)], never);
  let hedges = 0;
  for (let i = 0; i < 1000; i++) {
    group.choose("a", true, i);
    if (group.takeHedge()) hedges += 1;
  }
  expect(hedges).toBeGreaterThanOrEqual(49);
  expect(hedges).toBeLessThanOrEqual(50);
});
