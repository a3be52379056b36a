/** A value of SQLite. Bytes are an array of numbers. */
export type Cell = string | number | null | readonly number[];

/** A value as SQL writes it, except that text has no quotes. */
export function textOf(value: Cell): string {
  if (value === null) return "NULL";
  if (typeof value !== "object") return String(value);
  return `x'${value.map((byte) => byte.toString(16).padStart(2, "0")).join("")}'`;
}
