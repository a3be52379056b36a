import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Rows } from "../core/pages.ts";
import { count as formatCount } from "../core/format.ts";
import { singleKeys } from "../core/preferences.ts";

export interface Column<T> {
  key: string;
  title: ComponentChildren;
  /** As in grid-template-columns: "120px", "minmax(0, 2fr)". */
  width: string;
  cell: (row: T, index: number) => ComponentChildren;
  /** Only on wide screens. */
  isExtra?: boolean;
  /** On narrow screens, in a line of its own below the others. */
  isBelow?: boolean;
  isNumber?: boolean;
}

interface GridProps<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: Pick<Rows<T>, "count" | "row" | "show">;
  keyOf: (row: T) => string;
  /** Enter, or a click on the row. */
  onOpen?: (row: T, index: number) => void;
  /** The row whose panel is open beside the grid. */
  openKey?: string | undefined;
  selection?: Selection<T>;
  follow?: Follow;
  /** Minimum width of all columns together, below which they scroll sideways. */
  leastPx?: number;
}

/** Keeps the end of a growing list in view. A person who scrolls or moves away from the end stops it. */
export interface Follow {
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}

/** Rows that a person has chosen. */
export interface Selection<T> {
  has(row: T): boolean;
  toggle(row: T): void;
  /** Chooses all rows, or none. */
  toggleAll(): void;
  state: "none" | "some" | "all";
}

/** j and k lead into the first table of the screen while no control has the focus. */
function useRowKeys(frame: RefObject<HTMLElement | null>, enter: () => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || !["j", "k"].includes(event.key) || !singleKeys.get()) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (!(event.target as Element).matches("body, main") || frame.current?.closest("main") == null) return;
      event.preventDefault();
      enter();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  });
}

const linePx = 36;
/** The height of a second line of a row, on narrow screens. */
const belowPx = 28;
const aheadRows = 8;
const rowControls = ":is(a, button, select, input):not(.tick *)";

const narrow = matchMedia("(max-width: 720px)");

/** Whether the screen is as narrow as a phone's, where the stylesheets too have other rules. */
function useIsNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(narrow.matches);
  useEffect(() => {
    const changed = (): void => setNarrow(narrow.matches);
    changed();
    narrow.addEventListener("change", changed);
    return () => narrow.removeEventListener("change", changed);
  }, []);
  return isNarrow;
}

/** The columns' widths. On narrow screens, no column demands more than there is. */
function templateOf<T>(columns: readonly Column<T>[], isNarrow: boolean): string {
  if (!isNarrow) return columns.map(({ width }) => width).join(" ");
  const beside = columns.filter(({ isExtra, isBelow }) => !isExtra && !isBelow);
  return beside.map(({ width }) => width.replace(/^minmax\([^,]+,/, "minmax(0,")).join(" ");
}

const classOf = <T,>({ key, isExtra, isBelow, isNumber }: Column<T>): string =>
  `grid-cell cell-${key} ${isExtra ? "extra" : ""} ${isBelow ? "below" : ""} ${isNumber ? "number" : ""}`;

/**
 * A table of any length, of which at most some sixty rows are in the document. Keys: Tab goes to the current row, to
 * the links and buttons in it, and out; ↓ ↑ j k move, Page Up and Page Down move by a screen, Home and End go to the
 * ends, Enter and e open, Space and x select.
 */
export function Grid<T>(props: GridProps<T>) {
  const { label, columns, rows, keyOf, onOpen, openKey, selection, follow, leastPx = 0 } = props;
  const isNarrow = useIsNarrow();
  const rowPx = linePx + (isNarrow ? columns.filter(({ isBelow }) => isBelow).length * belowPx : 0);
  const frame = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState({ from: 0, to: 40 });
  const [at, setAt] = useState(0);
  const focusNext = useRef(false);
  const count = rows.count ?? 0;
  const current = Math.min(at, Math.max(0, count - 1));

  const measure = (): void => {
    const element = frame.current;
    if (element === null) return;
    const from = Math.max(0, Math.floor(element.scrollTop / rowPx) - aheadRows);
    const to = Math.min(count, Math.ceil((element.scrollTop + element.clientHeight) / rowPx) + aheadRows);
    setShown((before) => (before.from === from && before.to === to ? before : { from, to }));
  };
  const lastTop = useRef(0);
  useLayoutEffect(() => {
    if (follow?.isOn === true) frame.current!.scrollTop = frame.current!.scrollHeight;
    measure();
  }, [count, follow?.isOn, rowPx]);
  const scrolled = (): void => {
    const { scrollTop, scrollHeight, clientHeight } = frame.current!;
    const isUp = scrollTop < lastTop.current;
    lastTop.current = scrollTop;
    const isAtEnd = scrollTop + clientHeight >= scrollHeight - rowPx;
    if (follow !== undefined && (isUp ? follow.isOn && !isAtEnd : !follow.isOn && isAtEnd))
      follow.onChange(!isUp);
    measure();
  };
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, [count, rowPx]);
  useEffect(() => {
    if (count > 0) rows.show(shown.from, Math.min(count, shown.to));
  });
  useLayoutEffect(() => {
    if (!focusNext.current) return;
    focusNext.current = false;
    frame.current?.querySelector<HTMLElement>(`[data-row="${current}"]`)?.focus({ preventScroll: true });
  });

  useLayoutEffect(() => {
    for (const row of frame.current!.querySelectorAll<HTMLElement>("[data-row]"))
      for (const control of row.querySelectorAll<HTMLElement>(rowControls))
        control.tabIndex = row.dataset["row"] === String(current) ? 0 : -1;
  });

  const go = (index: number): void => {
    const element = frame.current!;
    const next = Math.max(0, Math.min(count - 1, index));
    const top = next * rowPx;
    const room = element.clientHeight - rowPx;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowPx > element.scrollTop + room) element.scrollTop = top + rowPx - room;
    focusNext.current = true;
    if (follow !== undefined && follow.isOn !== (next === count - 1)) follow.onChange(next === count - 1);
    setAt(next);
    measure();
  };
  useRowKeys(frame, () => frame.current?.querySelector<HTMLElement>(`[data-row="${current}"]`)?.focus());
  const move = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget && !(event.target as Element).matches("[data-row]")) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const screen = Math.max(1, Math.floor(frame.current!.clientHeight / rowPx) - 2);
    const to: Record<string, number> = {
      ArrowDown: current + 1,
      j: current + 1,
      ArrowUp: current - 1,
      k: current - 1,
      PageDown: current + screen,
      PageUp: current - screen,
      Home: 0,
      End: count - 1,
    };
    const row = rows.row(current);
    const link = frame.current!.querySelector<HTMLElement>(`[data-row="${current}"] a`);
    if (to[event.key] !== undefined) go(to[event.key]!);
    else if ((event.key === "Enter" || event.key === "e") && row !== undefined && onOpen)
      onOpen(row, current);
    else if ((event.key === "Enter" || event.key === "e") && link !== null) link.click();
    else if ((event.key === " " || event.key === "x") && row !== undefined && selection)
      selection.toggle(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const template = `${selection ? "32px " : ""}${templateOf(columns, isNarrow)}`;
  const shownRows = Array.from(
    { length: Math.max(0, Math.min(shown.to, count) - shown.from) },
    (_, i) => shown.from + i,
  );
  return (
    <div
      class={`grid ${selection ? "ticked" : ""}`}
      ref={(element) => {
        element?.style.setProperty("--columns", template);
        element?.style.setProperty("--least", `${leastPx}px`);
        element?.style.setProperty("--row-height", `${rowPx}px`);
      }}
    >
      <div
        ref={frame}
        class="grid-frame"
        role="grid"
        aria-label={label}
        aria-rowcount={count + 1}
        aria-colcount={columns.length + (selection ? 1 : 0)}
        onScroll={scrolled}
        onKeyDown={move}
        tabIndex={count === 0 ? 0 : -1}
      >
        <div class="grid-row grid-head" role="row" aria-rowindex={1}>
          {selection && (
            <div role="columnheader" class="grid-cell tick">
              <input
                type="checkbox"
                aria-label="Select all rows"
                checked={selection.state === "all"}
                ref={(element) => {
                  if (element) element.indeterminate = selection.state === "some";
                }}
                onChange={() => selection.toggleAll()}
              />
            </div>
          )}
          {columns.map((column) => (
            <div key={column.key} role="columnheader" class={classOf(column)}>
              {column.title}
            </div>
          ))}
        </div>
        <div
          class="grid-body"
          role="rowgroup"
          ref={(element) => {
            if (element) element.style.height = `${count * rowPx}px`;
          }}
        >
          {shownRows.map((index) => {
            const row = rows.row(index);
            const isSelected = row !== undefined && selection?.has(row) === true;
            return (
              <div
                key={index}
                class={`grid-row ${isSelected ? "selected" : ""} ${row !== undefined && keyOf(row) === openKey ? "opened" : ""} ${onOpen ? "opens" : ""}`}
                role="row"
                data-row={index}
                aria-rowindex={index + 2}
                aria-selected={selection ? isSelected : undefined}
                aria-label={`row ${formatCount(index + 1)} of ${formatCount(count)}`}
                tabIndex={index === current ? 0 : -1}
                ref={(element) => {
                  if (element) element.style.transform = `translateY(${index * rowPx}px)`;
                }}
                onFocus={(event) => {
                  if (event.target === event.currentTarget) setAt(index);
                }}
                onClick={(event) => {
                  if (
                    (event.target as Element).closest("a, button, input, select, .tick") !== null ||
                    row === undefined
                  )
                    return;
                  if (getSelection()?.isCollapsed === false) return;
                  setAt(index);
                  onOpen?.(row, index);
                }}
              >
                {selection && (
                  <div role="gridcell" class="grid-cell tick">
                    <input
                      type="checkbox"
                      tabIndex={-1}
                      aria-label={`Select row ${index + 1}`}
                      checked={isSelected}
                      disabled={row === undefined}
                      onChange={() => row !== undefined && selection.toggle(row)}
                    />
                  </div>
                )}
                {columns.map((column) => (
                  <div key={column.key} role="gridcell" class={classOf(column)}>
                    {row === undefined ? <span class="bar" /> : column.cell(row, index)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
