import { CompiledQuery, type Compilable } from "kysely";
import type { Read } from "./storage.ts";

/** A placeholder for a value while a query is built. */
class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/**
 * A query that is built once for each engine. On the hottest paths, building a query costs several times as
 * much as running it (profile of `npm run bench -- api`). Other queries are built where they are used.
 */
export function prepared<P extends object, R>(
  build: (db: Read, parameters: P) => Compilable<R>,
): (db: Read, parameters: P) => Promise<R[]> {
  const compiled = new Map<unknown, CompiledQuery>();
  const placeholders = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) }) as P;
  return async (db, parameters) => {
    const engine = db.getExecutor().adapter.constructor;
    let query = compiled.get(engine);
    if (query === undefined) {
      query = build(db, placeholders).compile();
      compiled.set(engine, query);
    }
    const values = query.parameters.map((value) =>
      value instanceof Placeholder ? parameters[value.name as keyof P] : value,
    );
    const result = await db.executeQuery(CompiledQuery.raw(query.sql, values));
    return result.rows as R[];
  };
}
