interface Details {
  message: string;
  /** JSON pointer to the field of the input that the error is about. */
  pointer?: string | undefined;
  retryAfterSeconds?: number | undefined;
  /** The HTTP status of the origin's response that the error is about. */
  originStatus?: number;
  /** The causes of this error, which callers see too. */
  reasons?: readonly DomainError[];
  /** More about the error, for clients that read it. */
  meta?: Readonly<Record<string, unknown>>;
}

/** An error with a public message. It knows no protocol: each protocol maps the kind to codes of its own. */
export class DomainError<Kind extends string = string> extends Error {
  /** The area and the name, such as "queues.notFound". */
  readonly kind: Kind;
  readonly pointer: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly originStatus: number | undefined;
  readonly reasons: readonly DomainError[];
  readonly meta: Readonly<Record<string, unknown>> | undefined;

  constructor(
    kind: Kind,
    { message, pointer, retryAfterSeconds, originStatus, reasons = [], meta }: Details,
  ) {
    super(message);
    this.kind = kind;
    this.pointer = pointer;
    this.retryAfterSeconds = retryAfterSeconds;
    this.originStatus = originStatus;
    this.reasons = reasons;
    this.meta = meta;
  }
}

/** Several errors of one request, all reported to the caller. */
export class DomainErrors extends Error {
  readonly errors: readonly DomainError[];
  constructor(errors: readonly DomainError[]) {
    super(errors[0]?.message ?? "invalid request");
    this.errors = errors;
  }
}

/** The results of independent checks, by name. Their errors are thrown together, those of the first check first. */
export function checkAll<Checks extends Record<string, () => unknown>>(
  checks: Checks,
): { [Name in keyof Checks]: ReturnType<Checks[Name]> } {
  const results: Record<string, unknown> = {};
  const errors: DomainError[] = [];
  for (const [name, check] of Object.entries(checks)) {
    try {
      results[name] = check();
    } catch (error) {
      if (error instanceof DomainError) errors.push(error);
      else if (error instanceof DomainErrors) errors.push(...error.errors);
      else throw error;
    }
  }
  if (errors.length > 1) throw new DomainErrors(errors);
  if (errors.length === 1) throw errors[0]!;
  return results as { [Name in keyof Checks]: ReturnType<Checks[Name]> };
}

type Describe = (...values: never[]) => string | Details;
type Factories<Area extends string, Table> = {
  readonly [Name in keyof Table & string]: Table[Name] extends (...values: infer Values) => unknown
    ? (...values: Values) => DomainError<`${Area}.${Name}`>
    : never;
};

/** The errors of an area, from functions that return the message, or the message and details. */
export function defineErrors<Area extends string, Table extends Record<string, Describe>>(
  area: Area,
  table: Table,
): Factories<Area, Table> {
  const factories = Object.entries(table).map(([name, describe]) => [
    name,
    (...values: never[]) => {
      const described = describe(...values);
      const details = typeof described === "string" ? { message: described } : described;
      return new DomainError(`${area}.${name}`, details);
    },
  ]);
  return Object.fromEntries(factories) as Factories<Area, Table>;
}

/** Errors of input that are not about one domain. */
export const inputErrors = defineErrors("input", {
  invalid: (message: string, pointer?: string) => ({ message, pointer }),
  absentProduct: (product: string, replacement?: string) =>
    `${product} ${isPlural(product) ? "are" : "is"} not part of this installation${replacement === undefined ? "" : `. ${replacement}`}`,
});

const isPlural = (product: string): boolean => /[^aius]s$/.test(product) && product !== "Pages";
