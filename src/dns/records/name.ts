import { parse } from "tldts";
import { dnsErrors } from "./errors.ts";
import { toAscii } from "./types/host.ts";

const nameLengthMax = 253;
const labelLengthMax = 63;

/**
 * A record's full name in stored form: lower-case ASCII without a final dot. "@" and "" are the apex. As in
 * the public API, a name that does not end in the zone's name is relative to it, unless it has a final dot.
 * Throws DomainError.
 */
export function parseRecordName(input: string, zoneName: string): string {
  const given = input.trim();
  if (given === "") return zoneName;
  const bare = toAscii(given.replace(/(?<=[^.])\.$/, ""));
  if (bare === undefined)
    throw dnsErrors.invalidName(input, "it has characters that are not allowed in names");
  const name = wholeName(bare, zoneName);
  if (given.endsWith(".") && name !== bare) {
    throw dnsErrors.invalidName(input, `it ends with a dot but is not inside ${zoneName}`);
  }
  if (name.length > nameLengthMax) {
    throw dnsErrors.invalidName(input, `it is longer than ${nameLengthMax} characters`);
  }
  for (const [index, label] of name.split(".").entries()) {
    if (label === "*" && index === 0) continue;
    const fault = faultOfLabel(label);
    if (fault !== undefined) throw dnsErrors.invalidName(input, fault);
  }
  return name;
}

function wholeName(name: string, zoneName: string): string {
  if (name === "@" || name === zoneName) return zoneName;
  return name.endsWith(`.${zoneName}`) ? name : `${name}.${zoneName}`;
}

function faultOfLabel(label: string): string | undefined {
  if (label === "") return "it has an empty label";
  if (label.length > labelLengthMax)
    return `the label "${label}" is longer than ${labelLengthMax} characters`;
  if (label.includes("*")) return '"*" is allowed only as the whole first label';
  if (/^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$/.test(label)) return undefined;
  return `the label "${label}" may have only letters, digits, "_" and inner "-"`;
}

/** Whether a name that is read as relative to the zone looks like a name in another domain. */
export function looksForeign(input: string, zoneName: string): boolean {
  const name = toAscii(input.trim());
  if (name === undefined || name.endsWith(".") || wholeName(name, zoneName) !== `${name}.${zoneName}`)
    return false;
  const { domain, isIcann } = parse(name);
  return domain !== null && isIcann === true;
}
