/** A host name as the target of a record, in stored form (lower-case ASCII, no final dot); undefined when it is none. */
export function parseHost(
  text: string,
  allow: { underscore?: boolean; root?: boolean } = {},
): string | undefined {
  if (text === "." || text === "") return allow.root === true && text === "." ? "." : undefined;
  const name = toAscii(text.replace(/\.$/, ""));
  if (name === undefined || name.length > 253) return undefined;
  const label = allow.underscore === true ? /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/ : /^(?!-)[a-z0-9-]{1,63}(?<!-)$/;
  const labels = name.split(".");
  if (!labels.every((part) => label.test(part))) return undefined;
  // Four numbers are an address, not a name.
  return /^\d+$/.test(labels.at(-1)!) ? undefined : name;
}

/** Lower-case ASCII of a name that may carry other letters; names that are ASCII already are only lower-cased. */
export function toAscii(name: string): string | undefined {
  if (/^[\x21-\x7e]*$/.test(name)) return name.toLowerCase();
  const labels = name.split(".").map((label) => {
    if (/^[\x21-\x7e]*$/.test(label)) return label.toLowerCase();
    try {
      const ascii = new URL(`http://${label}.invalid`).hostname.slice(0, -".invalid".length);
      return /^[a-z0-9-]+$/.test(ascii) ? ascii : undefined;
    } catch {
      return undefined;
    }
  });
  return labels.includes(undefined) ? undefined : labels.join(".");
}
