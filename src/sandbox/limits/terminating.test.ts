import { expect, it } from "vitest";
import type { FaultKind } from "../errors.ts";
import { TerminatingCells } from "./terminating.ts";
import type { CellRun } from "../gateway/cell-run.ts";

const settings = { shared: 1, graceCpuMs: 3000, graceMsMax: 15_000 };
const cellRun = (owner: string, canMove: boolean): CellRun =>
  ({ script: { owner }, isMovable: () => canMove }) as never;

function cellOf(runs: CellRun[], possibleCulprits: CellRun[]) {
  const cell = {
    runs: new Set(runs),
    possibleCulprits,
    isDead: false,
    ended: [] as FaultKind[],
    cpu: 100,
    rss: 1e8,
    process: { cpuMs: () => cell.cpu, rssBytes: () => cell.rss },
    die(kind: FaultKind) {
      cell.ended.push(kind);
      return [];
    },
  };
  return cell;
}

it("applies to cells with runs of innocent owners that cannot be retried", () => {
  const cells = new TerminatingCells(settings);
  const [culprit, post, get] = [
    cellRun("culprit", false),
    cellRun("innocent", false),
    cellRun("innocent", true),
  ];
  expect(cells.isFor(cellOf([culprit, get], [culprit]))).toBe(false);
  expect(cells.isFor(cellOf([culprit, post], [culprit]))).toBe(true);
  expect(cells.isFor(cellOf([culprit, post], [culprit, post]))).toBe(true);
  const cell = cellOf([culprit, post], [culprit]);
  cells.add(cell, "cpu", 0);
  expect(cells.isFor(cellOf([culprit, post], [culprit]))).toBe(false); // one at a time
});

it.each([
  ["they are done", (cell) => cell.runs.clear(), "ended"],
  ["their CPU time is over", (cell) => (cell.cpu = 3200), "cpu"],
  ["they take more memory", (cell) => (cell.rss = 2e8), "cpu"],
] as [string, (cell: ReturnType<typeof cellOf>) => void, FaultKind][])(
  "ends them when %s",
  (_, change, kind) => {
    const cells = new TerminatingCells(settings);
    const post = cellRun("innocent", false);
    const cell = cellOf([post], [cellRun("culprit", false)]);
    cells.add(cell, "cpu", 0);
    cells.killDue(1000);
    expect(cell.ended).toEqual([]);
    change(cell);
    cells.killDue(1001);
    cells.killDue(1002);
    expect(cell.ended).toEqual([kind]);
  },
);

it("kills them after their grace period, and on close", () => {
  const cells = new TerminatingCells(settings);
  const cell = cellOf([cellRun("innocent", false)], []);
  cells.add(cell, "memory", 0);
  cells.killDue(15_001);
  expect(cell.ended).toEqual(["memory"]);
  const other = cellOf([cellRun("innocent", false)], []);
  cells.add(other, "memory", 0);
  cells.close();
  expect(other.ended).toEqual(["ended"]);
});
