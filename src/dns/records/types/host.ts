/**
 * A host name as the target of a record, in stored form (lower-case ASCII, no final dot); undefined if it is
 * invalid.
 */
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
  // A number as the last label means an IP address, perhaps mistyped, and not a name.
  return /^\d+$/.test(labels.at(-1)!) ? undefined : name;
}

/**
 * The lower-case ASCII form of an internationalized name. ASCII names are only lower-cased. Undefined if it
 * is invalid.
 */
export function toAscii(name: string): string | undefined {
  const labels = name.split(".").map(labelToAscii);
  return labels.includes(undefined) ? undefined : labels.join(".");
}

function labelToAscii(label: string): string | undefined {
  if (/^[\x21-\x7e]*$/.test(label)) return label.toLowerCase();
  // The URL parser implements IDNA. Characters with a meaning in URLs must not reach it.
  if (!/^[\p{L}\p{M}\p{N}\p{S}\p{Cf}-]+$/u.test(label) || /[+<=>^`|~$]/.test(label)) return undefined;
  const url = `http://${label}.invalid`;
  if (!URL.canParse(url)) return undefined;
  const ascii = new URL(url).hostname.slice(0, -".invalid".length);
  return /^[a-z0-9-]+$/.test(ascii) ? ascii : undefined;
}
