/** An error of a migration whose message is for the operator. */
export class MigrationError extends Error {}

/** An error answer of an API. The message contains its method, path, status, code and text. */
export class CallRefused extends MigrationError {
  readonly status: number;
  readonly code: number | undefined;

  constructor(call: string, status: number, errors: readonly { code?: number; message?: string }[]) {
    const [first] = errors;
    const texts = errors.map(({ code, message }) => `${code ?? ""} ${printable(message ?? "")}`.trim());
    super(`${call} was answered with ${status}${texts.length === 0 ? "" : `: ${texts.join("; ")}`}`);
    this.status = status;
    this.code = first?.code;
  }

  /** Whether the account does not have the product or the resource, or the token may not read it. */
  get isAbsence(): boolean {
    return this.status === 403 || this.status === 404 || this.status === 405;
  }
}

/** An error that leaves open whether the call had an effect: no answer came, or the server failed. */
export class UncertainError extends MigrationError {}

const printableCharsMax = 200;

/** Text of an account, for a terminal: on one line, without control characters, and not too long. */
export function printable(text: string, charsMax = printableCharsMax): string {
  const clean = text.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");
  return clean.length > charsMax ? `${clean.slice(0, charsMax - 1)}…` : clean;
}
