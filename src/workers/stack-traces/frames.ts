/** A position in a module: line and column from 1, as V8 prints them. */
export interface SourcePosition {
  file: string;
  line: number;
  column: number;
}

/** A line of a stack with a position. */
interface Frame extends SourcePosition {
  /** The text before and after the position. */
  before: string;
  after: string;
}

const framesMax = 100;
/** Files of the platform's own code in an isolate: the names in `loadable` and of the system worker. */
const ownFile = /^(?:__selvedge_*\/(?:entry|user)\.js|sandbox\/worker\/[\w-]+\.js)$/;

function frameOf(line: string): Frame | undefined {
  const match = /^(\s+at )(.*)$/.exec(line);
  if (match === null) return undefined;
  const [, at, rest] = match as unknown as [string, string, string];
  const open = rest.endsWith(")") ? rest.lastIndexOf("(") + 1 : rest.startsWith("async ") ? 6 : 0;
  const position = /^(.+):(\d{1,9}):(\d{1,9})(\)?)$/.exec(rest.slice(open));
  if (position === null) return undefined;
  const [, file, row, column, after] = position as unknown as [string, string, string, string, string];
  return {
    before: at + rest.slice(0, open),
    file: file.replace(/^file:\/\/\//, ""),
    line: Number(row),
    column: Number(column),
    after,
  };
}

/** The positions in a stack, without those in the platform's own code. */
export function positionsIn(stack: string): SourcePosition[] {
  const positions: SourcePosition[] = [];
  for (const line of stack.split("\n")) {
    const frame = frameOf(line);
    if (frame !== undefined && !ownFile.test(frame.file) && positions.length < framesMax)
      positions.push(frame);
  }
  return positions;
}

/** A stack for the author of a script: without the platform's frames, and with positions replaced by `original`. */
export function shownStack(
  stack: string,
  original: (position: SourcePosition) => SourcePosition | undefined,
): string {
  const lines: string[] = [];
  for (const line of stack.split("\n")) {
    const frame = frameOf(line);
    if (frame === undefined) {
      lines.push(line);
      continue;
    }
    if (ownFile.test(frame.file)) continue;
    const position = original(frame);
    const { file, line: row, column } = position ?? frame;
    lines.push(position === undefined ? line : `${frame.before}${file}:${row}:${column}${frame.after}`);
  }
  return lines.join("\n");
}
