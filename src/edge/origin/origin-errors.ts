/** Counts of the error pages that an origin caused, by code. */
export class OriginErrors {
  readonly counts: Record<string, number> = {};

  /** Counts an error page if an origin caused it. `code` is the code of any error page. */
  readonly note = (code: number): void => {
    if ((code >= 520 && code <= 530) || code === noAddress) this.counts[code] = (this.counts[code] ?? 0) + 1;
  };
}

/** The host's record points to a name without an address. */
const noAddress = 1016;
