/** An error in an expression with its position in UTF-16 units. Thrown only inside the parser. */
export class Fault extends Error {
  readonly start: number;
  readonly end: number;
  readonly suggestion: string | undefined;

  constructor(reason: string, start: number, end: number, suggestion?: string) {
    super(reason);
    this.start = start;
    this.end = end;
    this.suggestion = suggestion;
  }
}
