import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Suspects } from "./suspects.ts";

const runsToTrust = 4;
const behave = (suspects: Suspects, owner: string, runs: number): void => {
  for (let i = 0; i < runs; i++) suspects.behaved(owner);
};
/** Good runs until it is trusted. */
function runsUntilTrusted(suspects: Suspects, owner: string): number {
  let runs = 0;
  while (suspects.has(owner)) {
    suspects.behaved(owner);
    runs++;
  }
  return runs;
}

describe("Suspects", () => {
  it("trusts everyone at first, and whoever was suspected in vain after some good runs", () => {
    const suspects = new Suspects(runsToTrust);
    expect(suspects.has("a")).toBe(false);
    suspects.behaved("a");
    suspects.suspect("a");
    expect([suspects.has("a"), suspects.has("b")]).toEqual([true, false]);
    expect(runsUntilTrusted(suspects, "a")).toBe(1);
  });

  it("believes less each time that somebody is suspected again", () => {
    const suspects = new Suspects(runsToTrust);
    const asked: number[] = [];
    for (let i = 0; i < 4; i++) {
      suspects.suspect("a");
      asked.push(runsUntilTrusted(suspects, "a"));
    }
    expect(asked).toEqual([1, 4, 4, 4]);
  });

  it("asks twice as much after each fault, up to a point", () => {
    const suspects = new Suspects(runsToTrust);
    const asked: number[] = [];
    for (let faults = 1; faults <= 8; faults++) {
      for (let i = 0; i < faults; i++) suspects.convict("a");
      asked.push(runsUntilTrusted(suspects, "a"));
    }
    expect(asked).toEqual([8, 16, 32, 64, 128, 256, 256, 256]);
  });

  it("begins to count again at a fault, and at a run that would stall others", () => {
    const suspects = new Suspects(runsToTrust);
    suspects.convict("a");
    behave(suspects, "a", 2 * runsToTrust - 1);
    suspects.isHeavy("a");
    behave(suspects, "a", 2 * runsToTrust - 1);
    expect(suspects.has("a")).toBe(true);
    suspects.convict("a");
    behave(suspects, "a", 4 * runsToTrust - 1);
    expect(suspects.has("a")).toBe(true);
    suspects.behaved("a");
    expect(suspects.has("a")).toBe(false);
  });

  it("does not forget the past of one that is suspected once more", () => {
    const suspects = new Suspects(runsToTrust);
    suspects.convict("a");
    suspects.suspect("a");
    expect(runsUntilTrusted(suspects, "a")).toBe(2 * runsToTrust);
  });

  it("a heavy run makes no suspect", () => {
    const suspects = new Suspects(runsToTrust);
    suspects.isHeavy("a");
    expect(suspects.has("a")).toBe(false);
  });

  it("whatever happens to others changes nothing for one", () => {
    const happening = fc.tuple(
      fc.constantFrom("suspect", "convict", "behaved", "isHeavy"),
      fc.constantFrom("a", "b", "c"),
    );
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 200 }), (happenings) => {
        const [all, alone] = [new Suspects(runsToTrust), new Suspects(runsToTrust)];
        for (const [what, owner] of happenings) {
          all[what](owner);
          if (owner === "a") alone[what](owner);
          // Who has just done harm runs alone.
          if (what === "suspect" || what === "convict") expect(all.has(owner)).toBe(true);
        }
        expect(all.has("a")).toBe(alone.has("a"));
        expect(runsUntilTrusted(all, "a")).toBe(runsUntilTrusted(alone, "a"));
      }),
    );
  });
});
