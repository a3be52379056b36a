import { useMemo, useState } from "preact/hooks";
import { count, plural } from "../../core/format.ts";
import { changesBetween, type Change } from "../../core/line-difference.ts";
import { Button } from "../../parts/button.tsx";

interface Line {
  kind: "same" | "removed" | "added" | "left out";
  /** The numbers of the line in the two texts. */
  before?: number;
  after?: number;
  text: string;
}

/** A longer text is not compared line by line: a page that works on it for seconds cannot be used. */
export const textLengthMax = 2 * 1024 * 1024;
const contextLines = 3;
/** A longer line is cut, as those of minified code. */
const lineLengthMax = 400;
const linesAtOnce = 400;
const marks = { same: "", removed: "−", added: "+", "left out": "" } as const;

/** The part of a long line in which it differs from another. */
function cut(line: string, other: string | undefined): string {
  if (line.length <= lineLengthMax) return line;
  let start = 0;
  if (other !== undefined) {
    while (start < line.length && line[start] === other[start]) start++;
    start = Math.max(0, Math.min(start - 40, line.length - lineLengthMax));
  }
  const rest = line.length - start - lineLengthMax;
  return `${start > 0 ? "… " : ""}${line.slice(start, start + lineLengthMax)}${rest > 0 ? ` … ${count(rest)} more characters` : ""}`;
}

/** The changed lines, each with a few around it. They are made as they are read, since they may be many. */
function* linesOf(
  before: readonly string[],
  after: readonly string[],
  changes: readonly Change[],
): Generator<Line> {
  let at = 0;
  let shift = 0;
  function* same(to: number): Generator<Line> {
    for (; at < to; at++)
      yield { kind: "same", before: at + 1, after: at + 1 + shift, text: cut(before[at]!, undefined) };
  }
  for (const [index, change] of changes.entries()) {
    const from = change.before - contextLines;
    if (from > at) {
      yield { kind: "left out", text: plural(from - at, "line") };
      at = from;
    }
    yield* same(change.before);
    for (let i = change.before; i < change.beforeEnd; i++)
      yield {
        kind: "removed",
        before: i + 1,
        text: cut(before[i]!, after[change.after + i - change.before]),
      };
    for (let i = change.after; i < change.afterEnd; i++)
      yield { kind: "added", after: i + 1, text: cut(after[i]!, before[change.before + i - change.after]) };
    [at, shift] = [change.beforeEnd, change.afterEnd - change.beforeEnd];
    const next = changes[index + 1]?.before ?? before.length;
    yield* same(Math.min(at + contextLines, next));
  }
  if (at < before.length) yield { kind: "left out", text: plural(before.length - at, "line") };
}

const split = (text: string): string[] => (text === "" ? [] : text.split("\n"));

interface Props {
  label: string;
  before: string;
  after: string;
}

/** Two texts line by line: what was removed, what was added, and a few lines around. */
export function ChangedLines({ label, before, after }: Props) {
  const [shown, setShown] = useState(linesAtOnce);
  const [texts, changes] = useMemo(() => {
    const lines = [split(before), split(after)] as const;
    const found = changesBetween(...lines);
    const whole = { before: 0, beforeEnd: lines[0].length, after: 0, afterEnd: lines[1].length };
    return [lines, found ?? [whole]] as const;
  }, [before, after]);
  const lines: Line[] = [];
  let isMore = false;
  for (const line of linesOf(...texts, changes)) {
    isMore = lines.length === shown;
    if (isMore) break;
    lines.push(line);
  }
  return (
    <>
      <div class="table-frame changed-lines" tabIndex={0} role="region" aria-label={`Lines of ${label}`}>
        <table>
          <thead>
            <tr>
              {["Line before", "Line after", "Change", "Text"].map((title) => (
                <th key={title} scope="col">
                  <span class="unseen">{title}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {lines.map(({ kind, before: old, after: next, text }, index) => (
              <tr key={index} class={kind}>
                <td>{old}</td>
                <td>{next}</td>
                <td>
                  <span aria-hidden="true">{marks[kind]}</span>
                  {kind !== "same" && <span class="unseen">{kind}</span>}
                </td>
                <td>{kind === "left out" ? `⋯ ${text}` : <code>{text}</code>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {isMore && <Button onPress={() => setShown(shown + linesAtOnce)}>Show more lines</Button>}
    </>
  );
}
