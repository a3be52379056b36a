import { fc } from "../../../test/helpers/properties.ts";
import { describe, expect, it } from "vitest";
import { Quarantine } from "./quarantine.ts";

const runsToTrust = 4;
const stallMs = 250;
const heavy = (quarantine: Quarantine, owner: string): void => quarantine.recordRun(owner, stallMs, stallMs);
const succeed = (quarantine: Quarantine, owner: string, runs: number): void => {
  for (let i = 0; i < runs; i++) quarantine.recordSuccess(owner);
};
/** Good runs until the owner is released. */
function runsUntilReleased(quarantine: Quarantine, owner: string): number {
  let runs = 0;
  while (quarantine.has(owner)) {
    quarantine.recordSuccess(owner);
    runs++;
  }
  return runs;
}

describe("Quarantine", () => {
  it("starts empty, and releases an innocent owner after one good run", () => {
    const quarantine = new Quarantine(runsToTrust);
    expect(quarantine.has("a")).toBe(false);
    quarantine.recordSuccess("a");
    quarantine.add("a");
    expect([quarantine.has("a"), quarantine.has("b")]).toEqual([true, false]);
    expect(runsUntilReleased(quarantine, "a")).toBe(1);
  });

  it("needs more good runs each time an owner is quarantined again", () => {
    const quarantine = new Quarantine(runsToTrust);
    const asked: number[] = [];
    for (let i = 0; i < 4; i++) {
      quarantine.add("a");
      asked.push(runsUntilReleased(quarantine, "a"));
    }
    expect(asked).toEqual([1, 4, 4, 4]);
  });

  it("doubles the runs needed after each fault, up to a maximum", () => {
    const quarantine = new Quarantine(runsToTrust);
    const asked: number[] = [];
    for (let faults = 1; faults <= 8; faults++) {
      for (let i = 0; i < faults; i++) quarantine.recordFault("a");
      asked.push(runsUntilReleased(quarantine, "a"));
    }
    expect(asked).toEqual([8, 16, 32, 64, 128, 256, 256, 256]);
  });

  it("restarts the count of good runs at a fault and at a heavy run", () => {
    const quarantine = new Quarantine(runsToTrust);
    quarantine.recordFault("a");
    succeed(quarantine, "a", 2 * runsToTrust - 1);
    heavy(quarantine, "a");
    succeed(quarantine, "a", 2 * runsToTrust - 1);
    expect(quarantine.has("a")).toBe(true);
    quarantine.recordFault("a");
    succeed(quarantine, "a", 4 * runsToTrust - 1);
    expect(quarantine.has("a")).toBe(true);
    quarantine.recordSuccess("a");
    expect(quarantine.has("a")).toBe(false);
  });

  it("keeps the faults of an owner that is quarantined once more", () => {
    const quarantine = new Quarantine(runsToTrust);
    quarantine.recordFault("a");
    quarantine.add("a");
    expect(runsUntilReleased(quarantine, "a")).toBe(2 * runsToTrust);
  });

  it("does not quarantine an owner for a heavy run", () => {
    const quarantine = new Quarantine(runsToTrust);
    heavy(quarantine, "a");
    expect(quarantine.has("a")).toBe(false);
  });

  it("keeps an owner whose runs are harmless one by one but stall a cell together", () => {
    const quarantine = new Quarantine(runsToTrust);
    quarantine.add("a", 30);
    quarantine.add("b", 1);
    expect(quarantine.isUntested("a")).toBe(true);
    for (const owner of ["a", "b"]) quarantine.recordRun(owner, stallMs / 10, stallMs);
    expect([quarantine.has("a"), quarantine.has("b")]).toEqual([true, false]);
    expect([quarantine.isHeavy("a"), quarantine.isUntested("a")]).toEqual([true, false]);
    quarantine.recordRun("a", stallMs / 100, stallMs);
    expect(quarantine.has("a")).toBe(false);
  });

  it("treats each owner independently of the others", () => {
    const event = fc.tuple(
      fc.constantFrom("add", "recordFault", "recordSuccess", "heavy"),
      fc.constantFrom("a", "b", "c"),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 200 }), (events) => {
        const [all, alone] = [new Quarantine(runsToTrust), new Quarantine(runsToTrust)];
        for (const [what, owner] of events) {
          for (const quarantine of owner === "a" ? [all, alone] : [all])
            if (what === "heavy") heavy(quarantine, owner);
            else quarantine[what](owner);
          // An owner that has just faulted is quarantined.
          if (what === "add" || what === "recordFault") expect(all.has(owner)).toBe(true);
        }
        expect(all.has("a")).toBe(alone.has("a"));
        expect(runsUntilReleased(all, "a")).toBe(runsUntilReleased(alone, "a"));
      }),
    );
  });
});
