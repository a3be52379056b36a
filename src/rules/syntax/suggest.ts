import { editDistance } from "../../platform/util/suggest.ts";

/** The known name closest to a misspelled one; undefined if none is close enough. */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > 80) return undefined;
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length / 4)) + 1;
  for (const candidate of candidates) {
    // A missing prefix is more likely than many wrong letters.
    const distance =
      name.length > 3 && candidate.endsWith(`.${name}`) ? 1 : editDistance(name, candidate, bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}
