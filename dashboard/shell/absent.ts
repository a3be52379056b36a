/** Products of the public API that people look for, and that this version does not have. */
const absent: readonly { names: readonly string[]; text: string }[] = [
  {
    names: ["r2", "bucket", "object storage"],
    text: "This version has no R2. Images keeps pictures, and Key-value values of up to 25 MiB.",
  },
  {
    names: ["cache", "purge", "hit rate"],
    text: "This version has no cache, so no address is to be purged: each request reaches the script or the origin.",
  },
];

const shortest = 2;

/** The sentence about a product that this version does not have, if a text looks for one. */
export function absentText(text: string): string | undefined {
  const wanted = text.trim().toLowerCase();
  if (wanted.length < shortest) return undefined;
  return absent.find(({ names }) =>
    names.some((name) => name.startsWith(wanted) || wanted.startsWith(`${name} `)),
  )?.text;
}
