import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Code } from "../code/as-code.tsx";
import { bytes } from "../core/format.ts";
import { rowsOf } from "../core/pages.ts";
import { textOf, type Cell } from "./cell.ts";
import { Dialog } from "./dialog.tsx";
import { Grid } from "./grid.tsx";

const shownMax = 200;
const columnPx = 140;

interface ResultsProps {
  label: string;
  columns: readonly string[];
  rows: readonly (readonly Cell[])[];
  /** The form of a row, which opening it shows; without one, its values in full. */
  form?: ((row: readonly Cell[], close: () => void) => ComponentChildren) | undefined;
}

/** Rows that a query has returned. Opening a row shows its values in full. */
export function Results({ label, columns, rows, form }: ResultsProps) {
  const [open, setOpen] = useState<number | undefined>(undefined);
  const row = open === undefined ? undefined : rows[open];
  return (
    <>
      <Grid
        label={label}
        columns={columns.map((title, at) => ({
          key: String(at),
          title,
          width: `minmax(${columnPx}px, ${isNumber(rows[0]?.[at]) ? 0.3 : 1}fr)`,
          isNumber: isNumber(rows[0]?.[at]),
          cell: (cells: readonly Cell[]) => <Value of={cells[at]!} />,
        }))}
        rows={rowsOf(rows)}
        keyOf={(cells) => String(rows.indexOf(cells))}
        leastPx={columns.length * columnPx}
        onOpen={(_, index) => setOpen(index)}
      />
      {row !== undefined && (
        <Dialog title={`Row ${open! + 1}`} kind="side" onClose={() => setOpen(undefined)}>
          {form?.(row, () => setOpen(undefined)) ??
            columns.map((name, at) => (
              <section key={at} class="value">
                <h3>{name}</h3>
                <Code text={textOf(row[at]!)} label={name} />
              </section>
            ))}
        </Dialog>
      )}
    </>
  );
}

const isNumber = (value: Cell | undefined): boolean => typeof value === "number";

function Value({ of: value }: { of: Cell }) {
  if (value === null) return <span class="faint">NULL</span>;
  if (typeof value === "object") return <span class="faint">{bytes(value.length)}</span>;
  return <>{String(value).slice(0, shownMax)}</>;
}
