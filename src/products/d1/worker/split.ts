/*
 * Splits SQL text into statements. Imports nothing, because the object of a database loads it inside workerd.
 */

/** The state of the scanner: in code, in a quoted text that ends with this character, or in a comment. */
type State = "code" | "'" | '"' | "`" | "]" | "line" | "block";

const quotes: Readonly<Record<string, State>> = { "'": "'", '"': '"', "`": "`", "[": "]" };
const trigger = /^\s*(?:EXPLAIN\s+(?:QUERY\s+PLAN\s+)?)?CREATE\s+(?:TEMP(?:ORARY)?\s+)?TRIGGER\b/i;
const endsWithEnd = /; ?END ?$/i;
/** Longest text that `endsWithEnd` matches. */
const endLength = "; END ".length;

/**
 * Finds the ends of statements in text that arrives in pieces. A semicolon ends a statement, except in quotes, in
 * comments, and inside the body of a trigger, which ends with `; END;` (as sqlite3_complete does).
 */
export class StatementSplitter {
  #text = "";
  /** Index up to which the text was scanned. */
  #at = 0;
  #state: State = "code";
  /** The statement without comments and quoted texts, and with one space for each gap, to recognize triggers. */
  #code = "";
  /** Whether the statement is a trigger; known from its first semicolon on. */
  #isTrigger: boolean | undefined;

  /** Returns the statements that the text completes. Comments before a statement belong to it. */
  push(text: string): string[] {
    this.#text += text;
    return this.#scan(false);
  }

  /** Returns the statements that end with the text. */
  end(): string[] {
    const found = this.#scan(true);
    if (this.#code.trim() !== "") found.push(this.#text.trim());
    this.#reset("");
    return found;
  }

  /** Number of characters of the statement that is not complete. */
  get pendingLength(): number {
    return this.#text.length;
  }

  #scan(isEnd: boolean): string[] {
    const found: string[] = [];
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at]!;
      const next = this.#text[this.#at + 1];
      // The next character decides what these are.
      if (next === undefined && !isEnd && "-/*'\"`]".includes(character)) break;
      if (this.#state === "code") {
        if (character === ";" && this.#isComplete()) {
          if (this.#code.trim() !== "") found.push(this.#text.slice(0, this.#at).trim());
          this.#reset(this.#text.slice(this.#at + 1));
        } else this.#at += this.#code1(character, next);
      } else this.#at += this.#other(character, next);
    }
    return found;
  }

  /** Whether a semicolon ends the statement. */
  #isComplete(): boolean {
    this.#isTrigger ??= trigger.test(this.#code);
    return !this.#isTrigger || endsWithEnd.test(this.#code.slice(-endLength));
  }

  /** Takes a character of code; returns how many characters it has taken. */
  #code1(character: string, next: string | undefined): number {
    if (character === "-" && next === "-") return this.#enter("line", 2);
    if (character === "/" && next === "*") return this.#enter("block", 2);
    const quote = quotes[character];
    if (quote !== undefined) {
      this.#code += "x";
      return this.#enter(quote, 1);
    }
    this.#add(character);
    return 1;
  }

  #add(character: string): void {
    const isGap = /\s/.test(character);
    if (!isGap) this.#code += character;
    else if (!this.#code.endsWith(" ")) this.#code += " ";
  }

  #enter(state: State, length: number): number {
    this.#state = state;
    return length;
  }

  /** Takes a character of a quoted text or of a comment. */
  #other(character: string, next: string | undefined): number {
    const state = this.#state;
    if (state === "line") return character === "\n" ? this.#leave(1) : 1;
    if (state === "block") return character === "*" && next === "/" ? this.#leave(2) : 1;
    if (character !== state) return 1;
    if (next === state && state !== "]") return 2; // a doubled quote stands for itself
    this.#state = "code";
    return 1;
  }

  #leave(length: number): number {
    this.#state = "code";
    this.#add(" ");
    return length;
  }

  #reset(rest: string): void {
    this.#text = rest;
    this.#at = 0;
    this.#code = "";
    this.#isTrigger = undefined;
    this.#state = "code";
  }
}

/** The statements of a text, without the semicolons between them. */
export function splitStatements(text: string): string[] {
  const splitter = new StatementSplitter();
  return [...splitter.push(text), ...splitter.end()];
}

/** Number of values that a statement takes: of `?`, of the highest `?NNN`, and of names. */
export function countParameters(statement: string): number {
  const code = statement.replaceAll(
    /'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)|`(?:[^`]|``)*(?:`|$)|\[[^\]]*(?:\]|$)|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g,
    " ",
  );
  let count = 0;
  const names = new Set<string>();
  for (const [found, digits] of code.matchAll(/\?(\d*)|(?<![\w$])[:@$]\w+/g)) {
    if (found.startsWith("?"))
      count = digits === "" || digits === undefined ? count + 1 : Math.max(count, Number(digits));
    else if (!names.has(found)) {
      names.add(found);
      count++;
    }
  }
  return count;
}
