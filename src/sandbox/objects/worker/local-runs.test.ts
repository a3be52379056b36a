import { expect, it } from "vitest";
import { addRun, endRun, runOf } from "./local-runs.ts";

const call = { run: "above", binding: "ROOMS", reference: "{}" };
const keptMax = 50_000;

function addMany(): void {
  for (let i = 0; i < keptMax; i++) endRun(addRun(call, undefined));
}

it("finds runs in progress and those that ended lately, by their whole token", () => {
  const run = addRun(call, undefined);
  expect(runOf(run.token)).toBe(run);
  endRun(run);
  expect(runOf(run.token)).toBe(run);
  const place = run.token.split(".")[1];
  const others = [
    `local.${place}.${crypto.randomUUID()}`,
    `local.${place}`,
    "local.",
    "",
    "local.__proto__.x",
  ];
  for (const other of others) expect(runOf(other)).toBeUndefined();
  addMany();
  expect(runOf(run.token)).toBeUndefined();
});

it("keeps runs that are in progress for long, and drops those of them that ended long ago", () => {
  const long = Array.from({ length: 1000 }, () => addRun(call, undefined));
  addMany();
  for (const run of long) expect(runOf(run.token)).toBe(run);
  endRun(long[0]!);
  expect(runOf(long[0]!.token)).toBe(long[0]);
  const last = addRun(call, undefined);
  addMany();
  expect(runOf(long[0]!.token)).toBeUndefined();
  for (const run of [...long.slice(1), last]) expect(runOf(run.token)).toBe(run);
});
