/**
 * Collects the constants and helper functions of generated code. The expression's text never becomes part of
 * the source.
 */
export class Writer {
  readonly constants: unknown[] = [];
  readonly functions: string[] = [];
  #temporaries: string[] = [];
  #count = 0;

  /** Code for a constant: the name of a passed value, or a safe integer itself. */
  constant(value: unknown): string {
    if (typeof value === "number" && Number.isSafeInteger(value) && !Object.is(value, -0)) {
      return value < 0 ? `(${value})` : String(value);
    }
    const known = this.constants.indexOf(value);
    const index = known === -1 ? this.constants.push(value) - 1 : known;
    return `c${index}`;
  }

  /** Declares a variable in the current function and returns its name. */
  temporary(): string {
    const name = this.name("t");
    this.#temporaries.push(name);
    return name;
  }

  name(prefix: string): string {
    return `${prefix}${this.#count++}`;
  }

  /** Writes a function of the fields with the statements of `body`, and returns its name. */
  function(body: () => string): string {
    const outer = this.#temporaries;
    this.#temporaries = [];
    const name = this.name("g");
    const statements = body();
    const declared = this.#temporaries.length === 0 ? "" : `let ${this.#temporaries.join(",")};`;
    this.functions.push(`function ${name}(f){${declared}${statements}}`);
    this.#temporaries = outer;
    return name;
  }
}
