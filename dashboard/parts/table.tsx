import type { ComponentChildren } from "preact";

export interface TableColumn<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  isNumber?: boolean;
  /** Only on wide screens. */
  isExtra?: boolean;
  /** Takes the room that is left. */
  isWide?: boolean;
}

interface TableProps<T> {
  label: string;
  columns: readonly TableColumn<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  /** Buttons at the end of each row. */
  actions?: (row: T) => ComponentChildren;
}

/**
 * A short table, in a frame of its own that scrolls sideways. Long lists are a Grid. On narrow screens, each row is a block:
 * its first cell, the others with their titles, and its buttons at the corner. Roles are written, as `display` changes.
 */
export function Table<T>({ label, columns, rows, keyOf, actions }: TableProps<T>) {
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={label}>
      <table role="table">
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ title, isNumber, isExtra }) => (
              <th
                key={title}
                scope="col"
                role="columnheader"
                class={`${isNumber ? "number" : ""} ${isExtra ? "extra" : ""}`}
              >
                {title}
              </th>
            ))}
            {actions && (
              <th scope="col" role="columnheader">
                <span class="unseen">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              {columns.map(({ title, cell, isNumber, isExtra, isWide }) => (
                <td
                  key={title}
                  role="cell"
                  data-title={title}
                  class={`${isNumber ? "number" : ""} ${isExtra ? "extra" : ""} ${isWide ? "wide" : ""}`}
                >
                  {cell(row)}
                </td>
              ))}
              {actions && (
                <td role="cell" class="row-actions">
                  {actions(row)}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
