/* Paths of property names, which scripts send with method calls. */
export type RemoteMethod = (...args: unknown[]) => unknown;
/** A stub of workerd: any name that it does not inherit is a remote property. */
export type Remote = Record<string, unknown>;

const pathMax = 32;
/** Properties of the stub itself. Scripts must not reach them, because the stub belongs to the system worker. */
const inherited = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
  "catch",
  "connect",
  "dup",
  "fetch",
  "finally",
  "then",
]);

/** Copies and validates a path that a script has sent. */
export function checkedPath(path: readonly unknown[]): string[] {
  const names = Array.from({ length: Math.min(path.length, pathMax + 1) }, (_, i) => path[i]);
  const refused = names.find((name) => typeof name !== "string" || inherited.has(name));
  if (refused !== undefined || names.length === 0 || names.length > pathMax)
    throw new TypeError(`The RPC receiver does not implement the method "${names.join(".")}".`);
  return names as string[];
}
