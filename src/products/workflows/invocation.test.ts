import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { Invocation, type InvocationHost, type EnginePort } from "./worker/invocation.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const limits = { lingerMs: 100, valueBytesMax: 1000, stepsMax: 10, retryDelayMs: 10 };
const host = { now: () => 0, after: () => () => {}, isInsideStep: () => false } as unknown as InvocationHost;
const port = { call: async () => "" } as unknown as EnginePort;

/** An invocation that has ended while its code still makes calls. */
function overButAsking(): WeakRef<Invocation> {
  const invocation = new Invocation(port, { limits, history: [] } as never, host);
  invocation.close({ end: "held" });
  const code = async (): Promise<unknown> => [await invocation.call({} as never), invocation];
  void code();
  return new WeakRef(invocation);
}

it("is garbage-collected after its end, even when its code waits forever", async () => {
  const invocations = Array.from({ length: 100 }, overButAsking);
  await nextTurn();
  collect();
  expect(invocations.filter((invocation) => invocation.deref() !== undefined)).toEqual([]);
});
