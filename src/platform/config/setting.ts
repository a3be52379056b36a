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
  /** A name in the environment that other programs know too; `env` comes first. */
  alsoEnv?: string;
  /** Undefined if there is no default. The description then states the effect. */
  default?: string | number | boolean | readonly string[];
  describe: string;
  secret?: true;
};

/** The declaration of a setting whose value is one of these texts. */
export const choice = <const C extends readonly string[]>(choices: C) =>
  ({ kind: "choice", choices }) as const;

type Value<S> = S extends { kind: "count" }
  ? number
  : S extends { kind: "flag" }
    ? boolean
    : S extends { kind: "list" }
      ? readonly string[]
      : S extends { choices: readonly (infer C)[] }
        ? C
        : string;

/** The values of settings. Those without a default may be undefined. */
export type ConfigOf<Settings> = {
  [N in keyof Settings]: Settings[N] extends { default: unknown }
    ? Value<Settings[N]>
    : Value<Settings[N]> | undefined;
};
