/** Collects what a generated function needs around its body. Nothing of the expression's text goes into the source. */
export class Writer {
  readonly constants: unknown[] = [];
  readonly functions: string[] = [];
  #temporaries: string[] = [];
  #count = 0;

  /** A name for a value that is passed in. Numbers are written as they are. */
  constant(value: unknown): string {
    if (typeof value === "number" && Number.isSafeInteger(value) && !Object.is(value, -0)) {
      return value < 0 ? `(${value})` : String(value);
    }
    const known = this.constants.indexOf(value);
    const index = known === -1 ? this.constants.push(value) - 1 : known;
    return `c${index}`;
  }

  /** A variable of the function that is being written. */
  temporary(): string {
    const name = this.name("t");
    this.#temporaries.push(name);
    return name;
  }

  name(prefix: string): string {
    return `${prefix}${this.#count++}`;
  }

  /** Writes a function of the fields; `body` gives its statements. Gives the function's name. */
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
