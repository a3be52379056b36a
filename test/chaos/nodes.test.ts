import { expect, it } from "vitest";
import { nodesChaos } from "./run.ts";

/** The short form of `node test/proofs/nodes.ts`. */
it(
  "kills of a node and of the database lose nothing that was acknowledged, and both nodes show the same",
  { timeout: 240_000 },
  async () => {
    const report = await nodesChaos({
      seconds: 1,
      seed: 1,
      pauseMs: 20,
      calmMsMax: 500,
      writers: 3,
      readers: 2,
      perKind: 1,
      only: ({ name, part }) => name === "database killed" || (name === "node killed" && part === "node two"),
    });
    const { lost, wrong, stale, different, process, faults } = report;
    expect({ lost, wrong, stale, different, process, faults }).toEqual({
      lost: [],
      wrong: [],
      stale: [],
      different: [],
      process: [],
      faults: [],
    });
    expect(Object.keys(report.disturbances).toSorted()).toEqual(["database killed", "node killed"]);
    expect(report.acknowledged).toBeGreaterThan(0);
  },
);
