/** How well a name fits a text, from its best fit: the whole name, its beginning, the beginning of a word in it, … */
export const fits = { whole: 0, beginning: 1, word: 2, part: 3, words: 4, letters: 5 } as const;

/** The place of a name in results for a text: a smaller number is a better fit. Undefined if it does not fit. */
export function rank(text: string, name: string): number | undefined {
  const [wanted, given] = [text.trim().toLowerCase(), name.toLowerCase()];
  if (given === wanted) return fits.whole;
  if (given.startsWith(wanted)) return fits.beginning;
  const parts = wanted.split(/\s+/);
  for (let at = given.indexOf(wanted); at >= 0; at = given.indexOf(wanted, at + 1))
    if (!/[\p{L}\p{N}]/u.test(given[at - 1]!)) return fits.word;
  if (given.includes(wanted)) return fits.part;
  if (parts.length > 1 && parts.every((part) => given.includes(part))) return fits.words;
  return isShortFor(wanted.replaceAll(/\s/g, ""), given) ? fits.letters : undefined;
}

const isWordStart = (text: string, at: number): boolean => at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]!);

/** Whether each letter begins a word of a name, or follows the letter before it: "orul" is short for "origin rules". */
function isShortFor(wanted: string, name: string): boolean {
  // The places of the name at which the letters so far may end; before the first one, outside of it.
  let ends: readonly number[] = [-1];
  for (const letter of wanted) {
    const [first = name.length] = ends;
    const next: number[] = [];
    for (let at = name.indexOf(letter); at >= 0; at = name.indexOf(letter, at + 1))
      if (at > first && (isWordStart(name, at) || ends.includes(at - 1))) next.push(at);
    ends = next;
  }
  return ends.length > 0;
}
