import { TestFault } from "./test-fault.ts";

/** Returns the id of an operation. Throws a TestFault for an id that no operation has, which would match no call. */
export function knownOperation<Id extends string | undefined>(operations: ReadonlySet<string>, id: Id): Id {
  if (id === undefined || operations.has(id)) return id;
  const like = similar(operations, id);
  throw new TestFault(
    400,
    `Expected the id of an operation, as in openapi.json, but received ${JSON.stringify(id)}` +
      (like === undefined ? "" : `. Did you mean ${like}?`),
  );
}

/** The id with the most pairs of neighbouring letters in common; undefined if none has half of them. */
function similar(operations: ReadonlySet<string>, id: string): string | undefined {
  const wanted = pairsOf(id.slice(0, 200));
  let best: string | undefined;
  let bestShare = 0.5;
  for (const each of operations) {
    const pairs = pairsOf(each);
    const share = (2 * [...wanted].filter((pair) => pairs.has(pair)).length) / (wanted.size + pairs.size);
    if (share > bestShare) [best, bestShare] = [each, share];
  }
  return best;
}

const pairsOf = (text: string): Set<string> =>
  new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, index) => text.slice(index, index + 2)));
