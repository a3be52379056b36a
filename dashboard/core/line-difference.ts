/** Lines that differ: those of one text from `before` to `beforeEnd` were replaced by those of the other. */
export interface Change {
  before: number;
  beforeEnd: number;
  after: number;
  afterEnd: number;
}

/** The most steps of a comparison, about 0.1 s: texts that are repetitive and differ everywhere need more. */
const stepsMax = 20_000_000;
/** The most lines that occur in both texts and that move. The memory of a comparison grows with its square. */
const movesMax = 2000;

/**
 * The fewest changes between two lists of lines, in their order. Undefined if they differ too much for it.
 * A line that only one text has is never common, so only the others are searched.
 */
export function changesBetween(before: readonly string[], after: readonly string[]): Change[] | undefined {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let [end, afterEnd] = [before.length, after.length];
  while (end > start && afterEnd > start && before[end - 1] === after[afterEnd - 1]) {
    end--;
    afterEnd--;
  }
  const common = [
    placesOf(before, start, end, after, afterEnd),
    placesOf(after, start, afterEnd, before, end),
  ];
  /** A number for each text of a line, since numbers are quicker to compare. */
  const numbers = new Map<string, number>();
  for (const place of common[0]!) numbers.set(before[place]!, place);
  const pairs = pairsOf(
    Int32Array.from(common[0]!, (place) => numbers.get(before[place]!)!),
    Int32Array.from(common[1]!, (place) => numbers.get(after[place]!)!),
  );
  if (pairs === undefined) return undefined;
  const changes: Change[] = [];
  let [at, afterAt] = [start, start];
  const ends = [
    ...pairs.map(([x, y]) => [common[0]![x]!, common[1]![y]!] as const),
    [end, afterEnd] as const,
  ];
  for (const [x, y] of ends) {
    if (x > at || y > afterAt) changes.push({ before: at, beforeEnd: x, after: afterAt, afterEnd: y });
    [at, afterAt] = [x + 1, y + 1];
  }
  return changes;
}

/** The places of lines that are in the other text, too. */
function placesOf(
  lines: readonly string[],
  start: number,
  end: number,
  other: readonly string[],
  otherEnd: number,
): number[] {
  const known = new Set(other.slice(start, otherEnd));
  const places: number[] = [];
  for (let place = start; place < end; place++) if (known.has(lines[place]!)) places.push(place);
  return places;
}

/** The longest common subsequence as pairs of places: the greedy algorithm of Myers. */
function pairsOf(a: Int32Array, b: Int32Array): [number, number][] | undefined {
  const most = Math.min(movesMax, a.length + b.length);
  /** The furthest place in `a` on each diagonal (place in `a` minus place in `b`), with `most + 1` as the zero. */
  const furthest = new Int32Array(2 * most + 3);
  const turns: Int32Array[] = [];
  let steps = 0;
  for (let moves = 0; moves <= most; moves++) {
    turns.push(furthest.slice(most + 1 - moves, most + 2 + moves));
    for (let diagonal = -moves; diagonal <= moves; diagonal += 2) {
      const at = most + 1 + diagonal;
      const isDown = diagonal === -moves || (diagonal !== moves && furthest[at - 1]! < furthest[at + 1]!);
      const from = isDown ? furthest[at + 1]! : furthest[at - 1]! + 1;
      let x = from;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++;
      furthest[at] = x;
      steps += x - from + 1;
      if (x >= a.length && x - diagonal >= b.length) return walkBack(turns, a.length, b.length);
    }
    if (steps > stepsMax) return undefined;
  }
  return undefined;
}

/** Reads the way of a comparison from its end: `turns` has the furthest places before each turn. */
function walkBack(turns: readonly Int32Array[], aLength: number, bLength: number): [number, number][] {
  const pairs: [number, number][] = [];
  let [x, y] = [aLength, bLength];
  for (let moves = turns.length - 1; moves >= 0; moves--) {
    const furthest = (diagonal: number): number => turns[moves]![moves + diagonal] ?? -1;
    const diagonal = x - y;
    const isDown =
      diagonal === -moves || (diagonal !== moves && furthest(diagonal - 1) < furthest(diagonal + 1));
    const beforeX = moves === 0 ? 0 : isDown ? furthest(diagonal + 1) : furthest(diagonal - 1);
    const beforeY = moves === 0 ? 0 : beforeX - (isDown ? diagonal + 1 : diagonal - 1);
    const [moveX, moveY] = moves === 0 ? [0, 0] : isDown ? [beforeX, beforeY + 1] : [beforeX + 1, beforeY];
    while (x > moveX && y > moveY) pairs.push([--x, --y]);
    [x, y] = [beforeX, beforeY];
  }
  return pairs.reverse();
}
