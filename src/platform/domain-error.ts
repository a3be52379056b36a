interface Details {
  message: string;
  /** JSON pointer to the field of the input that the error is about. */
  pointer?: string | undefined;
  retryAfterSeconds?: number | undefined;
}

/** An error with a public message. It knows no protocol: each protocol maps the kind to codes of its own. */
export class DomainError<Kind extends string = string> extends Error {
  /** The area and the name, such as "queues.notFound". */
  readonly kind: Kind;
  readonly pointer: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(kind: Kind, { message, pointer, retryAfterSeconds }: Details) {
    super(message);
    this.kind = kind;
    this.pointer = pointer;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

type Describe = (...values: never[]) => string | Details;
export type DomainErrors<Area extends string, Table> = {
  readonly [Name in keyof Table & string]: Table[Name] extends (...values: infer Values) => unknown
    ? (...values: Values) => DomainError<`${Area}.${Name}`>
    : never;
};

/** The errors of an area, from functions that return the message, or the message and details. */
export function domainErrors<Area extends string, Table extends Record<string, Describe>>(
  area: Area,
  table: Table,
): DomainErrors<Area, Table> {
  const factories = Object.entries(table).map(([name, describe]) => [
    name,
    (...values: never[]) => {
      const described = describe(...values);
      return new DomainError(
        `${area}.${name}`,
        typeof described === "string" ? { message: described } : described,
      );
    },
  ]);
  return Object.fromEntries(factories) as DomainErrors<Area, Table>;
}
