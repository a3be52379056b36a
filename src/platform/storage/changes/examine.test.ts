import { expect, it } from "vitest";
import { fc } from "../../../../test/helpers/properties.ts";
import { examine, type LogRow, type LogView } from "./examine.ts";

const logOf = (totals: readonly number[]): LogRow[] =>
  totals.flatMap((total, index) =>
    Array.from({ length: total }, (_, at) => ({
      seq: index + 1,
      n: at + 1,
      total,
      kind: "zone",
      id: `${index + 1}.${at + 1}`,
      parent_id: null,
      logged_on: 1000 + index,
    })),
  );

/** The result of a read of at most `rowsMax` rows after `seq`. */
function viewOf(log: readonly LogRow[], head: number, seq: number, rowsMax: number): LogView {
  const rows = log.filter((row) => row.seq > seq).slice(0, rowsMax);
  const loggedOn = (wanted: number): number | undefined =>
    log.find((row) => row.seq === wanted && row.n === 1)?.logged_on;
  return {
    head: { seq: head, loggedOn: loggedOn(head) },
    atPosition: loggedOn(seq),
    rows,
    isCut: rows.length >= rowsMax,
  };
}

const totals = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 12 });

it("every transaction is taken over completely, once and in order, however few rows a read returns", () => {
  const everyLog = fc.property(totals, fc.integer({ min: 1, max: 7 }), (sizes, rowsMax) => {
    const log = logOf(sizes);
    const seen: string[] = [];
    let position: { seq: number; loggedOn: number | undefined } = { seq: 0, loggedOn: undefined };
    let limit = rowsMax;
    for (let reads = 0; position.seq < sizes.length; reads++) {
      expect(reads).toBeLessThan(100);
      const { transactions, gap, rowsWanted } = examine(
        position,
        viewOf(log, sizes.length, position.seq, limit),
      );
      expect(gap).toBeUndefined();
      seen.push(...transactions!.flatMap(({ changes }) => changes.map(({ id }) => id)));
      position = transactions!.at(-1) ?? position;
      limit = rowsWanted ?? rowsMax;
    }
    expect(seen).toEqual(log.map(({ id }) => id));
  });
  fc.assert(everyLog);
});

it("any deleted row after the position is a gap", () => {
  const everyRow = fc.property(totals, fc.nat(), fc.nat(), (sizes, whichRow, whichSeq) => {
    const log = logOf(sizes);
    const seq = whichSeq % sizes.length;
    const after = log.filter((row) => row.seq > seq);
    const left = log.filter((row) => row !== after[whichRow % after.length]);
    const loggedOn = log.find((row) => row.seq === seq)?.logged_on;
    expect(examine({ seq, loggedOn }, viewOf(left, sizes.length, seq, 1000)).gap).toBe("missing");
  });
  fc.assert(everyRow);
});

it("a log that differs from the one read before is a gap", () => {
  const log = logOf([1, 1, 1]);
  expect(examine({ seq: 4, loggedOn: 1003 }, viewOf(log, 3, 4, 10)).gap).toBe("rewritten");
  expect(examine({ seq: 2, loggedOn: 999 }, viewOf(log, 3, 2, 10)).gap).toBe("rewritten");
  expect(examine({ seq: 2, loggedOn: 1001 }, viewOf(log, 3, 2, 10)).gap).toBeUndefined();
});
