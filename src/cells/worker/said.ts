/*
 * What goes with a request and is not its sender's: for which run it is, and what its wrapper is to do. workerd takes it along as
 * `request.cf`, from the front into a cell and from one script to the next: no header has to be put in, or taken out of a copy.
 * Scripts are shown what it says of the visitor (see run.ts).
 */
export interface Said {
  /** The token of the run; empty for the system worker's own business. Marks it as ours. */
  selvedgeRun: string;
  /** The script, for the system worker. */
  script?: string;
  /** What it exports; without it, the default. */
  entrypoint?: string;
  /** The state of the configuration, and how many subrequests are left: for a script that dispatches. */
  generation?: string;
  /** What the front alone can say, where a lane is opened. */
  lane?: string;
  /** What the script sees as `request.cf`, as JSON; without it, nothing. */
  visitor?: string;
  /** The handler that it is for, where that is not `fetch`. */
  event?: string;
  /** Somebody watches what the run logs. */
  isTraced?: boolean;
  /** Added to the script's `env`. */
  params?: Record<string, unknown>;
}

/** From a dispatcher's wrapper to the system worker. */
export interface SaidOfDispatch {
  selvedgeRun: string;
  binding: string;
  /** Which script, and its limits, as JSON. */
  said: string;
  /** Parameters of the outbound script, likewise; empty without any. */
  outbound: string;
}

/** What a request is fetched with, for that to go with it. */
export const withSaid = (cf: Said | SaidOfDispatch): RequestInit =>
  ({ __proto__: null, cf }) as unknown as RequestInit;

/** Headers that only a wrapper or the system worker says to the front. */
export const internalNames = [
  "x-selvedge-binding",
  "x-selvedge-channel",
  "x-selvedge-dispatch",
  "x-selvedge-outbound",
  "x-selvedge-event",
  "x-selvedge-pass",
] as const;
