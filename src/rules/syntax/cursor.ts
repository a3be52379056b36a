import { Fault } from "../values/fault.ts";

export const nestingLimit = 128;

/**
 * A position in the expression. The language has no tokens: every rule matches prefixes, without word
 * boundaries.
 */
export class Cursor {
  readonly text: string;
  pos: number;
  #depth = 0;

  constructor(text: string, pos = 0) {
    this.text = text;
    this.pos = pos;
  }

  skipSpace(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.pos);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d) return;
      this.pos++;
    }
  }

  /** The position after white space, without moving the cursor. */
  afterSpace(): number {
    const pos = this.pos;
    this.skipSpace();
    const after = this.pos;
    this.pos = pos;
    return after;
  }

  at(literal: string): boolean {
    return this.text.startsWith(literal, this.pos);
  }

  /** Consumes the literal if it comes next. Returns whether it does. */
  take(literal: string): boolean {
    if (!this.at(literal)) return false;
    this.pos += literal.length;
    return true;
  }

  expect(literal: string): void {
    if (!this.take(literal)) throw this.faultHere(`expected literal ${JSON.stringify(literal)}`);
  }

  /** Consumes characters while `belongs` is true. Throws `expected <name>` if there are none. */
  takeWhile(name: string, belongs: (code: number) => boolean): string {
    const start = this.pos;
    while (this.pos < this.text.length && belongs(this.text.charCodeAt(this.pos))) this.pos++;
    if (this.pos === start) throw this.faultHere(`expected ${name}`);
    return this.text.slice(start, this.pos);
  }

  get ended(): boolean {
    return this.pos >= this.text.length;
  }

  /** A fault that spans the rest of the expression. */
  faultHere(reason: string): Fault {
    return new Fault(reason, this.pos, this.text.length);
  }

  /** Runs a nested rule. Throws beyond the nesting limit. */
  nested<T>(at: number, rule: () => T): T {
    if (this.#depth >= nestingLimit) {
      throw new Fault(`maximum nesting depth exceeded (limit: ${nestingLimit})`, at, this.text.length);
    }
    this.#depth++;
    try {
      return rule();
    } finally {
      this.#depth--;
    }
  }
}
