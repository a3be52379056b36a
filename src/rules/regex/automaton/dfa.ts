import { wordBytes } from "../classes.ts";
import type { Nfa } from "./nfa.ts";
import { includes, type RangeSet } from "./range-set.ts";
import type { Assertion } from "../syntax.ts";

const unknown = 0;
const dead = -1;
const matched = -2;
const lineFeed: RangeSet = [[0x0a, 0x0a]];
const cacheCellsMax = 1 << 20;
const coreStatesMax = 1 << 20;

/** The kind of the preceding byte, as far as assertions distinguish it. */
const before = { start: 0, lineFeed: 1, word: 2, other: 3 } as const;

/**
 * A deterministic automaton that is built lazily. Each step is one table lookup, and a missing entry is
 * computed from the set of NFA states. A full table is cleared, so time is bounded by length × states and
 * memory by a few megabytes.
 */
export class LazyDfa {
  readonly #states: StateTable;
  /** Bytes that the pattern does not distinguish share a class. The last class is the end of the text. */
  readonly #classOf = new Uint8Array(256);
  readonly #classCount: number;
  readonly #sample: number[] = [];
  readonly #kindOfClass: number[] = [];
  /** Whether a set of the pattern contains the bytes of a class, at `set × classCount + class`. */
  readonly #takes: Uint8Array;
  readonly #seen: Uint32Array;
  readonly #stack: Int32Array;
  readonly #closure: Int32Array;
  readonly #targets: Uint16Array;
  #stamp = 0;
  #table = new Int32Array(0);
  /**
   * For each deterministic state, by number: its NFA states before assertions are decided, and the byte
   * before.
   */
  #cores: Uint16Array[] = [];
  #kinds: number[] = [];
  #coreStates = 0;
  #byKey = new Map<string, number>();
  #start = 0;

  constructor(nfa: Nfa) {
    this.#states = tabulate(nfa);
    const { sets, asserts, count } = this.#states;
    this.#classCount = this.#divideBytes(sets, asserts) + 1;
    this.#takes = new Uint8Array(sets.length * this.#classCount);
    for (const [i, set] of sets.entries()) {
      for (const [symbol, byte] of this.#sample.entries()) {
        if (includes(set, byte)) this.#takes[i * this.#classCount + symbol] = 1;
      }
    }
    this.#seen = new Uint32Array(count);
    this.#stack = new Int32Array(count * 3 + 2);
    this.#closure = new Int32Array(count);
    this.#targets = new Uint16Array(count + 1);
    this.#reset();
  }

  /** Whether the pattern matches anywhere in the bytes. */
  test(bytes: string): boolean {
    const classOf = this.#classOf;
    let state = this.#start;
    let table = this.#table;
    for (let i = 0; i < bytes.length; i++) {
      const symbol = classOf[bytes.charCodeAt(i) & 0xff]!;
      const next = table[state + symbol]!;
      if (next > 0) {
        state = next;
        continue;
      }
      state = next === unknown ? this.#step(state, symbol) : next;
      if (state < 0) return state === matched;
      table = this.#table;
    }
    const end = this.#classCount - 1;
    const last = table[state + end]!;
    return (last === unknown ? this.#step(state, end) : last) === matched;
  }

  #divideBytes(sets: readonly RangeSet[], asserts: boolean): number {
    const boundaries = new Set<number>([0]);
    for (const set of asserts ? [...sets, wordBytes, lineFeed] : sets) {
      for (const [first, last] of set) boundaries.add(first).add(last + 1);
    }
    for (let byte = 0; byte < 256; byte++) {
      if (boundaries.has(byte)) {
        this.#sample.push(byte);
        this.#kindOfClass.push(asserts ? kindOf(byte) : before.other);
      }
      this.#classOf[byte] = this.#sample.length - 1;
    }
    return this.#sample.length;
  }

  #reset(): void {
    // State numbers are offsets into the table. 0 means "not computed yet".
    this.#table = new Int32Array(this.#classCount * 16);
    this.#cores = [];
    this.#kinds = [];
    this.#coreStates = 0;
    this.#byKey.clear();
    this.#targets[0] = this.#states.start;
    this.#start = this.#intern(1, this.#states.asserts ? before.start : before.other);
  }

  /** The state whose core is the first `length` targets. */
  #intern(length: number, kind: number): number {
    const core = this.#targets.slice(0, length);
    const key = kind + Buffer.from(core.buffer, 0, length * 2).toString("latin1");
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    this.#cores.push(core);
    this.#kinds.push(kind);
    this.#coreStates += length;
    const id = this.#cores.length * this.#classCount;
    if (id + this.#classCount > this.#table.length) {
      const larger = new Int32Array(this.#table.length * 2);
      larger.set(this.#table);
      this.#table = larger;
    }
    this.#byKey.set(key, id);
    return id;
  }

  #step(state: number, symbol: number): number {
    const number = state / this.#classCount - 1;
    const isEnd = symbol === this.#classCount - 1;
    const closed = this.#close(
      this.#cores[number]!,
      this.#kinds[number]!,
      isEnd ? -1 : this.#sample[symbol]!,
    );
    let next = dead;
    if (closed === matched) {
      next = matched;
    } else if (!isEnd) {
      const length = this.#advance(closed, symbol);
      if (length > 0 && this.#isFull()) {
        const targets = this.#targets.slice(0, length);
        this.#reset();
        this.#targets.set(targets);
        return this.#intern(length, this.#kindOfClass[symbol]!);
      }
      if (length > 0) next = this.#intern(length, this.#kindOfClass[symbol]!);
    }
    this.#table[state + symbol] = next;
    return next;
  }

  #isFull(): boolean {
    return this.#cores.length * this.#classCount >= cacheCellsMax || this.#coreStates >= coreStatesMax;
  }

  /**
   * Finds the states that consume a byte, through all splits and the assertions that hold here. Returns their
   * count, or `matched`. `nextByte` is -1 at the end.
   */
  #close(core: Uint16Array, kind: number, nextByte: number): number {
    const { tags, outs, alts, assertions } = this.#states;
    const stack = this.#stack;
    const seen = this.#seen;
    const stamp = ++this.#stamp;
    let depth = 0;
    for (let i = core.length - 1; i >= 0; i--) stack[depth++] = core[i]!;
    let count = 0;
    while (depth > 0) {
      const index = stack[--depth]!;
      if (seen[index] === stamp) continue;
      seen[index] = stamp;
      const tag = tags[index]!;
      if (tag === tagBytes) {
        this.#closure[count++] = index;
      } else if (tag === tagSplit) {
        stack[depth++] = alts[index]!;
        stack[depth++] = outs[index]!;
      } else if (tag === tagMatch) {
        return matched;
      } else if (holds(assertions[alts[index]!]!, kind, nextByte)) {
        stack[depth++] = outs[index]!;
      }
    }
    return count;
  }

  /**
   * Advances every state of the closure by one byte, into the targets. A search may also begin at every
   * position.
   */
  #advance(closed: number, symbol: number): number {
    const { outs, alts, start } = this.#states;
    const stamp = ++this.#stamp;
    let length = 0;
    for (let i = 0; i < closed; i++) {
      const index = this.#closure[i]!;
      if (this.#takes[alts[index]! * this.#classCount + symbol] === 0) continue;
      const target = outs[index]!;
      if (this.#seen[target] === stamp) continue;
      this.#seen[target] = stamp;
      this.#targets[length++] = target;
    }
    if (this.#seen[start] !== stamp && !this.#states.anchored) this.#targets[length++] = start;
    return length;
  }
}

const tagBytes = 0;
const tagSplit = 1;
const tagAssert = 2;
const tagMatch = 3;

/**
 * The automaton as arrays. `alts` has the second target of a split, or the number of a set or an assertion.
 */
interface StateTable {
  count: number;
  start: number;
  tags: Uint8Array;
  outs: Int32Array;
  alts: Int32Array;
  sets: RangeSet[];
  assertions: Assertion[];
  asserts: boolean;
  /** Whether the pattern begins with the start of the text, so that no match can begin later. */
  anchored: boolean;
}

function tabulate({ states, start }: Nfa): StateTable {
  const tags = new Uint8Array(states.length);
  const outs = new Int32Array(states.length);
  const alts = new Int32Array(states.length);
  const sets = new Map<RangeSet, number>();
  const assertions = new Map<Assertion, number>();
  for (const [i, state] of states.entries()) {
    if (state.kind === "match") {
      tags[i] = tagMatch;
      continue;
    }
    outs[i] = state.out;
    tags[i] = state.kind === "bytes" ? tagBytes : state.kind === "split" ? tagSplit : tagAssert;
    alts[i] =
      state.kind === "split"
        ? state.alt
        : state.kind === "bytes"
          ? numberOf(sets, state.set)
          : numberOf(assertions, state.assertion);
  }
  const first = states[start]!;
  const anchored = first.kind === "assert" && first.assertion === "start";
  const shared = { count: states.length, start, tags, outs, alts, anchored, asserts: assertions.size > 0 };
  return { ...shared, sets: [...sets.keys()], assertions: [...assertions.keys()] };
}

function numberOf<T>(numbers: Map<T, number>, item: T): number {
  const known = numbers.get(item);
  if (known !== undefined) return known;
  numbers.set(item, numbers.size);
  return numbers.size - 1;
}

function kindOf(byte: number): number {
  return byte === 0x0a ? before.lineFeed : includes(wordBytes, byte) ? before.word : before.other;
}

function holds(assertion: Assertion, kind: number, next: number): boolean {
  switch (assertion) {
    case "start":
      return kind === before.start;
    case "end":
      return next === -1;
    case "line-start":
      return kind === before.start || kind === before.lineFeed;
    case "line-end":
      return next === -1 || next === 0x0a;
    default: {
      const boundary = (kind === before.word) !== (next !== -1 && includes(wordBytes, next));
      return boundary === (assertion === "word");
    }
  }
}
