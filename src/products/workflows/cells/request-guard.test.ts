import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, it, vi } from "vitest";
import type { RunHooks } from "../../../sandbox/gateway/run-hooks.ts";
import { requestsWhile } from "./request-guard.ts";

const sent = vi.fn();
const hooks: RunHooks = {
  fetch: sent,
  answered: () => () => ({ fetch: sent }),
  nested: async (name) => ({ name }) as never,
  object: async (name) => ({ name }) as never,
};
/** Sends a request, and says whether it was cut off. */
function isCutOff(run: RunHooks): boolean {
  const destroy = vi.fn();
  run.fetch(new URL("https://example.com"), {} as IncomingMessage, { destroy } as unknown as ServerResponse);
  return destroy.mock.calls.length > 0;
}

it("lets an invocation call others until it is aborted", async () => {
  let isAborted = false;
  const guarded = requestsWhile(() => !isAborted, hooks);
  expect(isCutOff(guarded)).toBe(false);
  expect(await guarded.nested!("a")).toEqual({ name: "a" });
  isAborted = true;
  expect(isCutOff(guarded)).toBe(true);
  await expect(guarded.nested!("a")).rejects.toThrow("runs elsewhere");
  await expect(guarded.object!("a", {} as never)).rejects.toThrow("runs elsewhere");
  expect(sent).toHaveBeenCalledTimes(1);
});

it("holds for work that an aborted invocation left running", () => {
  let isAborted = false;
  sent.mockClear();
  const left = requestsWhile(() => !isAborted, hooks).answered!();
  const after = typeof left === "function" ? left() : left!;
  expect(isCutOff(after)).toBe(false);
  isAborted = true;
  expect(isCutOff(after)).toBe(true);
  expect(sent).toHaveBeenCalledTimes(1);
});
