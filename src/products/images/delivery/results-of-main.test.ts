import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { CopyPlan } from "../results/copy-plan.ts";
import { ResultsOfMain } from "./results-of-main.ts";
import { cpuMs } from "../../../../test/helpers/cpu-ms.ts";

function newResults(sizeBytes: number, memoryBytesMax: number): ResultsOfMain {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-results-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "result");
  writeFileSync(path, Buffer.alloc(sizeBytes));
  const calls = { ask: async () => ({ path, sizeBytes }) } as unknown as ProcessCalls;
  return new ResultsOfMain(calls, memoryBytesMax, new CopyPlan(0));
}

it("forgets the results of one image only, also those that were read twice", async () => {
  const results = newResults(10, 10_000);
  for (const name of ["a/1", "a/2", "b/1", "a/1"]) await results.kept(name);
  results.forget("a");
  expect(["a/1", "a/2", "b/1"].map((name) => results.inMemory(name) !== undefined)).toEqual([
    false,
    false,
    true,
  ]);
});

it("keeps nothing that is larger than its memory", async () => {
  const results = newResults(2000, 1000);
  expect(await results.kept("a/1")).toMatchObject({ bytes: { length: 2000 } });
  results.forget("a");
  expect(results.inMemory("a/1")).toBeUndefined();
});

it("forgets all images at once within a beat, as when an account changes", async () => {
  const count = 5000;
  const results = newResults(1, count * 1000);
  const folders = Array.from({ length: count }, (_, index) => index.toString(16).padStart(64, "0"));
  for (const folder of folders) await results.kept(`${folder}/1`);
  const beganMs = cpuMs();
  for (const folder of folders) results.forget(folder);
  // One after the other, each search of all names took seconds in total.
  expect(cpuMs() - beganMs).toBeLessThan(500);
});
