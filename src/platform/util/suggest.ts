/** The candidate closest to a misspelled name; undefined if none is close enough. */
export function suggest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(name, candidate, bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** The least number of inserted, deleted and replaced characters, or `limit` if that is smaller. */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const substitution = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const distance = Math.min(substitution, row[j]! + 1, next[j - 1]! + 1);
      next.push(distance);
      if (distance < least) least = distance;
    }
    if (least >= limit) return limit;
    row = next;
  }
  return row[b.length]!;
}
