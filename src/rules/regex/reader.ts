import { PatternSyntaxError } from "./syntax.ts";

export interface Flags {
  ignoreCase: boolean;
  multiLine: boolean;
  dotAll: boolean;
  swapGreed: boolean;
  unicode: boolean;
  verbose: boolean;
}

export const noFlags: Flags = {
  ignoreCase: false,
  multiLine: false,
  dotAll: false,
  swapGreed: false,
  unicode: false,
  verbose: false,
};

/** The characters of a pattern, one code point at a time. */
export class PatternReader {
  readonly text: string;
  readonly chars: readonly string[];
  pos = 0;
  flags: Flags = noFlags;

  constructor(text: string) {
    this.text = text;
    this.chars = Array.from(text);
  }

  get ended(): boolean {
    return this.pos >= this.chars.length;
  }

  /** The character here, or "" at the end. */
  get here(): string {
    return this.chars[this.pos] ?? "";
  }

  peek(offset: number): string {
    return this.chars[this.pos + offset] ?? "";
  }

  take(literal: string): boolean {
    for (let i = 0; i < literal.length; i++) if (this.peek(i) !== literal[i]) return false;
    this.pos += literal.length;
    return true;
  }

  /** The characters up to the next `end`, which is consumed too; undefined if there is none. */
  takeUntil(end: string): string | undefined {
    const at = this.chars.indexOf(end, this.pos);
    if (at === -1) return undefined;
    const taken = this.chars.slice(this.pos, at).join("");
    this.pos = at + 1;
    return taken;
  }

  /** Skips white space and comments in verbose mode. */
  skipIgnored(): void {
    if (!this.flags.verbose) return;
    for (;;) {
      if (/^\s$/.test(this.here)) {
        this.pos++;
      } else if (this.here === "#") {
        while (!this.ended && this.peek(0) !== "\n") this.pos++;
      } else {
        return;
      }
    }
  }

  fault(reason: string, start: number, end = this.pos): PatternSyntaxError {
    return new PatternSyntaxError(this.text, reason, start, end);
  }
}
