import { expect, it } from "vitest";
import { ProcessNotes } from "../../platform/processes/notes.ts";
import type { Quarantine } from "./quarantine.ts";
import { sharedQuarantine } from "./shared-quarantine.ts";

const runsToTrust = 3;

/** The quarantines of main and of two edge processes, whose notes go through main. */
function three(): { main: Quarantine; edges: [Quarantine, Quarantine]; join: () => Quarantine } {
  const inMain = new ProcessNotes();
  const inEdges: ProcessNotes[] = [];
  inMain.line.send = async (note) => {
    for (const notes of inEdges) void notes.take(JSON.parse(JSON.stringify(note)) as typeof note);
  };
  const join = (): Quarantine => {
    const notes = new ProcessNotes();
    const quarantine = sharedQuarantine("scripts", runsToTrust, notes);
    for (const note of inMain.joinersNotes())
      void notes.take(JSON.parse(JSON.stringify(note)) as typeof note);
    inEdges.push(notes);
    notes.line.send = async (note) =>
      inMain.take(JSON.parse(JSON.stringify(note)) as typeof note, () => {
        for (const other of inEdges)
          if (other !== notes) void other.take(JSON.parse(JSON.stringify(note)) as typeof note);
      });
    return quarantine;
  };
  const main = sharedQuarantine("scripts", runsToTrust, inMain);
  return { main, edges: [join(), join()], join };
}

it("an owner that one process quarantines is quarantined in all, until one process trusts it again", () => {
  const { main, edges, join } = three();
  const all = [main, ...edges];
  for (const first of all) {
    first.add("suspect");
    expect(all.map((each) => each.has("suspect"))).toEqual([true, true, true]);
    expect(join().has("suspect")).toBe(true);
    for (let run = 0; run < 4 ** 3; run++) edges[1].recordSuccess("suspect");
    expect(all.map((each) => each.has("suspect"))).toEqual([false, false, false]);
  }
});

it("a fault in one process counts in all", () => {
  const { main, edges } = three();
  edges[0].recordFault("culprit");
  const all = [main, ...edges];
  expect(all.map((each) => each.hasFaulted("culprit"))).toEqual([true, true, true]);
  for (let run = 0; run < runsToTrust; run++) edges[1].recordSuccess("culprit");
  expect(all.map((each) => each.has("culprit"))).toEqual([true, true, true]);
});
