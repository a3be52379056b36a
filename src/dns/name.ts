import { parse } from "tldts";
import { dnsErrors } from "./errors.ts";
import { toAscii } from "./types/host.ts";

const nameLengthMax = 253;
const labelLengthMax = 63;

/**
 * A record's whole name in stored form: lower-case ASCII without a final dot. "@" is the apex. A name that does not
 * end in the zone's is relative to it, as in the public API, unless a final dot says that it is whole.
 */
export function parseRecordName(input: string, zoneName: string): string {
  const given = input.trim();
  if (given === "") throw dnsErrors.invalidName(input, 'it is empty; the apex is "@"');
  const bare = toAscii(given.replace(/(?<=[^.])\.$/, ""));
  if (bare === undefined) throw dnsErrors.invalidName(input, "it has characters that no name can have");
  const name = wholeName(bare, zoneName);
  if (given.endsWith(".") && name !== bare) {
    throw dnsErrors.invalidName(input, `it ends in a dot, but not in ${zoneName}`);
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
  if (label.includes("*")) return '"*" can only be the whole first label';
  if (/^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$/.test(label)) return undefined;
  return `the label "${label}" is not of letters, digits, "_" and inner "-"`;
}

/** Whether a name that is taken as relative to the zone looks as if another domain was meant. */
export function looksForeign(input: string, zoneName: string): boolean {
  const name = toAscii(input.trim());
  if (name === undefined || name.endsWith(".") || wholeName(name, zoneName) !== `${name}.${zoneName}`)
    return false;
  const { domain, isIcann } = parse(name);
  return domain !== null && isIcann === true;
}
