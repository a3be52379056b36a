import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { Segment, type Host, type Lane } from "./worker/segment.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const limits = { lingerMs: 100, valueBytesMax: 1000, stepsMax: 10, retryDelayMs: 10 };
const host = { now: () => 0, after: () => () => {}, isInsideStep: () => false } as unknown as Host;
const lane = { call: async () => "" } as unknown as Lane;

/** A segment that has ended while its code still asks for things. */
function overButAsking(): WeakRef<Segment> {
  const segment = new Segment(lane, { limits, history: [] } as never, host);
  segment.close({ end: "held" });
  const code = async (): Promise<unknown> => [await segment.call({} as never), segment];
  void code();
  return new WeakRef(segment);
}

it("leaves nothing in its isolate when it is over, though its code waits for ever", async () => {
  const segments = Array.from({ length: 100 }, overButAsking);
  await nextTurn();
  collect();
  expect(segments.filter((segment) => segment.deref() !== undefined)).toEqual([]);
});
