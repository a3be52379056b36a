import type { Form } from "./forms.ts";

type Kind =
  | { kind: "text"; form?: Form }
  | { kind: "address" }
  | { kind: "count"; min: number; max: number }
  | { kind: "flag" }
  | { kind: "choice"; choices: readonly string[] }
  | { kind: "list"; form?: Form };

/** The declaration of a setting. The command line, environment, file and reference page follow from it. */
export type Setting = Kind & {
  flag: string;
  env: string;
  /** Undefined if there is no default. The description then states the effect. */
  default?: string | number | boolean | readonly string[];
  describe: string;
  secret?: true;
};

export const choice = <const C extends readonly string[]>(choices: C) =>
  ({ kind: "choice", choices }) as const;
