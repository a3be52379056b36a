import { closeSync, existsSync, openSync, readSync, renameSync, writeSync } from "node:fs";

/*
 * A ring of lines in a file, which main writes and edge processes read. Writing sends no message, and to look at the head
 * costs a reader less than a microsecond, so it can do that for every request.
 *
 * The file is a head and then the ring. Positions count all bytes of lines ever written, so they only grow. The head has
 * two: the end of the last line, and the position up to which readers must have carried out the lines before they
 * serve, which is "due". Both are there twice, because a reader may see a half-written head. A line is
 * written before the head, so one whose writer was killed meanwhile does not exist.
 */

const headBytes = 32;
export const ringBytes = 1024 * 1024;
/** Longer lines are refused: a reader that lags a little must not lose its place to one. */
export const lineBytesMax = ringBytes / 4;
/** A reader this far behind has lost its place: the line that is being written may be over its next ones. */
const lagBytesMax = ringBytes - lineBytesMax;
/** A head is half-written for a fraction of a microsecond. */
const looksMax = 1000;

interface Head {
  end: number;
  due: number;
}

/** Reads the positions of an open ring. */
class HeadReader {
  readonly #fd: number;
  readonly #values = new Float64Array(headBytes / 8);
  readonly #bytes = new Uint8Array(this.#values.buffer);

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** Undefined if the head stays half-written. */
  read(): Head | undefined {
    const values = this.#values;
    for (let look = 0; look < looksMax; look++) {
      readSync(this.#fd, this.#bytes, 0, headBytes, 0);
      if (values[0] === values[2] && values[1] === values[3]) return { end: values[0]!, due: values[1]! };
    }
    return undefined;
  }

  /** Whether lines up to `position` include all that are due. The fast part of `read`. */
  isDone(position: number): boolean {
    readSync(this.#fd, this.#bytes, 0, headBytes, 0);
    const due = this.#values[1]!;
    return due === this.#values[3] && due <= position;
  }
}

/** The writer of a ring. There is one at a time. */
export class RingWriter {
  readonly #fd: number;
  readonly #head: Head;
  /** Whether an earlier writer has made the ring. This one goes on behind its last line. */
  readonly isOlder: boolean;

  constructor(path: string) {
    this.isOlder = existsSync(path);
    if (!this.isOlder) create(path);
    this.#fd = openSync(path, "r+");
    const head = new HeadReader(this.#fd).read();
    if (head === undefined) throw new Error(`The head of the ring ${path} is damaged`);
    this.#head = head;
  }

  get end(): number {
    return this.#head.end;
  }

  /** Adds a line, with its end of line. Returns the position behind it. With `isDue`, it and all before it are due. */
  append(line: string, isDue: boolean): number {
    const bytes = Buffer.from(line);
    if (bytes.length > lineBytesMax)
      throw new RangeError(`Expected at most ${lineBytesMax} bytes for a line`);
    const at = this.#head.end % ringBytes;
    const beforeSeam = Math.min(bytes.length, ringBytes - at);
    writeAll(this.#fd, bytes.subarray(0, beforeSeam), headBytes + at);
    writeAll(this.#fd, bytes.subarray(beforeSeam), headBytes);
    this.#head.end += bytes.length;
    if (isDue) this.#head.due = this.#head.end;
    this.#publish();
    return this.#head.end;
  }

  /** Makes the lines up to a position due. */
  makeDue(position: number): void {
    if (position <= this.#head.due) return;
    this.#head.due = position;
    this.#publish();
  }

  #publish(): void {
    const { end, due } = this.#head;
    writeAll(this.#fd, new Uint8Array(Float64Array.of(end, due, end, due).buffer), 0);
  }
}

/** With all its bytes, because there may be no space for them later, and at once, for readers that wait for it. */
function create(path: string): void {
  const fd = openSync(`${path}.new`, "w", 0o600);
  writeAll(fd, new Uint8Array(headBytes + ringBytes), 0);
  closeSync(fd);
  renameSync(`${path}.new`, path);
}

function writeAll(fd: number, bytes: Uint8Array, position: number): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at, bytes.length - at, position + at);
}

export interface Line {
  text: string;
  /** The position behind the line. */
  end: number;
}

/** One of the readers of a ring. */
export class RingReader {
  readonly #fd: number;
  readonly #head: HeadReader;

  constructor(path: string) {
    this.#fd = openSync(path, "r");
    this.#head = new HeadReader(this.#fd);
  }

  /** Whether a reader at this position has carried out all that is due. */
  isDone(position: number): boolean {
    return this.#head.isDone(position);
  }

  /** The positions now. */
  get head(): Head {
    return this.#head.read() ?? { end: 0, due: Infinity };
  }

  /** The lines from a position on; undefined if they may have been overwritten. */
  take(from: number): Line[] | undefined {
    const { end } = this.head;
    if (end - from > lagBytesMax) return undefined;
    const bytes = Buffer.allocUnsafe(Math.max(0, end - from));
    const at = from % ringBytes;
    const beforeSeam = Math.min(bytes.length, ringBytes - at);
    this.#read(bytes.subarray(0, beforeSeam), headBytes + at);
    this.#read(bytes.subarray(beforeSeam), headBytes);
    if (this.head.end - from > lagBytesMax) return undefined; // the writer came by meanwhile
    const lines: Line[] = [];
    for (let start = 0; start < bytes.length;) {
      const behind = bytes.indexOf(newline, start) + 1;
      if (behind === 0) return undefined;
      lines.push({ text: bytes.toString("utf8", start, behind), end: from + behind });
      start = behind;
    }
    return lines;
  }

  #read(bytes: Uint8Array, position: number): void {
    for (let at = 0; at < bytes.length;) {
      const count = readSync(this.#fd, bytes, at, bytes.length - at, position + at);
      if (count === 0) throw new Error("Expected a whole ring but its file is short");
      at += count;
    }
  }
}

const newline = 0x0a;
