import { dnsErrors } from "./errors.ts";
import { toAscii } from "./types/host.ts";

/**
 * A record's whole name in stored form. "@" and the zone's name are the apex; a name that does not end in the zone's is
 * relative to it, as in the public API.
 */
export function parseRecordName(input: string, zoneName: string): string {
  const bare = toAscii(input.trim().replace(/\.$/, ""));
  if (bare === undefined) throw dnsErrors.invalidName(input, "it has characters that no name can have");
  const name =
    bare === "@" || bare === "" || bare === zoneName
      ? zoneName
      : bare.endsWith(`.${zoneName}`)
        ? bare
        : `${bare}.${zoneName}`;
  if (input.trim() === "") throw dnsErrors.invalidName(input, 'it is empty; the apex is "@"');
  if (name.length > 253) throw dnsErrors.invalidName(input, "it is longer than 253 characters");
  name.split(".").forEach((label, index) => {
    if (label === "*" && index === 0) return;
    if (label === "") throw dnsErrors.invalidName(input, "it has an empty label");
    if (label.length > 63)
      throw dnsErrors.invalidName(input, `the label "${label}" is longer than 63 characters`);
    if (label.includes("*")) throw dnsErrors.invalidName(input, "“*” can only be the whole first label");
    if (!/^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$/.test(label)) {
      throw dnsErrors.invalidName(input, `the label "${label}" is not of letters, digits, "_" and inner "-"`);
    }
  });
  return name;
}
