import { ChangesTable, type ChangedField } from "../../../parts/changes-table.tsx";

/** The values in a document, by their path. */
function leaves(value: unknown, path = ""): [string, string][] {
  if (typeof value !== "object" || value === null)
    return value === undefined ? [] : [[path, JSON.stringify(value)]];
  const parts = Object.entries(value);
  return parts.length === 0
    ? [[path, JSON.stringify(value)]]
    : parts.flatMap(([name, each]) => leaves(each, path === "" ? name : `${path}.${name}`));
}

/** The difference between two documents. Fields that a partial change does not contain are unchanged, and not listed. */
export function differences(before: unknown, after: unknown): ChangedField[] {
  const [old, next] = [new Map(leaves(before)), new Map(leaves(after))];
  const paths = next.size === 0 ? [...old.keys()] : [...next.keys()];
  return paths
    .map((path) => ({ path, before: old.get(path), after: next.get(path) }))
    .filter(({ before, after }) => before !== after);
}

/** Before and after of a change, field by field. */
export function Changes({ before, after }: { before: unknown; after: unknown }) {
  const lines = differences(before, after);
  if (lines.length === 0) return <p class="faint">The entry names no changed fields.</p>;
  return <ChangesTable fields={lines} />;
}
