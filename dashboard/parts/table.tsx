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

/** A short table, in a frame of its own that scrolls sideways. Long lists are a Grid. */
export function Table<T>({ label, columns, rows, keyOf, actions }: TableProps<T>) {
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(({ title, isNumber, isExtra }) => (
              <th key={title} scope="col" class={`${isNumber ? "number" : ""} ${isExtra ? "extra" : ""}`}>
                {title}
              </th>
            ))}
            {actions && (
              <th scope="col">
                <span class="unseen">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, isNumber, isExtra, isWide }) => (
                <td
                  key={title}
                  class={`${isNumber ? "number" : ""} ${isExtra ? "extra" : ""} ${isWide ? "wide" : ""}`}
                >
                  {cell(row)}
                </td>
              ))}
              {actions && <td class="row-actions">{actions(row)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
