import { isIP, isIPv4 } from "node:net";
import { isId } from "../util/ids.ts";

/** The form that a text setting, or each item of a list, must have. */
export interface Form {
  /** The expectation in an error message. */
  expected: string;
  accepts(text: string): boolean;
}

export const secretLengthMin = 8;
const label = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const hostName = new RegExp(`^(?=.{1,254}$)${label}(?:\\.${label})*\\.?$`, "i");

export const isHostName = (text: string): boolean => hostName.test(text);

const durationPattern = /^([1-9]\d{0,5})([smhd])$/;
const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The milliseconds of a text of the form `duration`. */
export function durationMs(text: string): number {
  const [, count, unit] = durationPattern.exec(text)!; // checked when the configuration was read
  return Number(count) * unitMs[unit as keyof typeof unitMs];
}

/** The name and the value of NAME=VALUE, both percent-decoded, as in OpenTelemetry's variables. Throws a URIError. */
export function pairOf(text: string): [string, string] {
  const cut = Math.max(text.indexOf("="), 0);
  return [decodeURIComponent(text.slice(0, cut).trim()), decodeURIComponent(text.slice(cut + 1).trim())];
}

/** A pair whose name matches, and whose value has no control characters. */
export const pairOfName = (name: RegExp): Form => ({
  expected: "NAME=VALUE, percent-encoded,",
  accepts(text) {
    try {
      const [key, value] = pairOf(text);
      return name.test(key) && /^[^\p{Cc}]{0,4096}$/u.test(value);
    } catch {
      return false; // malformed percent-encoding
    }
  },
});

const matching = (expected: string, pattern: RegExp): Form => ({
  expected,
  accepts: (text) => pattern.test(text),
});

/** The forms that texts and items of lists can have. */
export const forms = {
  address: { expected: "an IPv4 or IPv6 address", accepts: (text) => isIP(text) !== 0 },
  network: { expected: "addresses or networks, such as 10.0.0.0/8,", accepts: isNetwork },
  resolver: {
    expected: "ADDRESS or ADDRESS:PORT, such as 9.9.9.9 or [2620:fe::fe]:53,",
    accepts: isResolver,
  },
  hostName: { expected: "a host name, such as ns1.example.com,", accepts: isHostName },
  httpUrl: { expected: "a URL with http or https", accepts: (text) => isUrl(text, "http:", "https:") },
  httpsUrl: { expected: "an https URL", accepts: (text) => isUrl(text, "https:") },
  email: matching("an email address", /^[^\s@]+@[^\s@]+$/),
  id: { expected: "32 lower-case hex characters", accepts: isId },
  hexKey: matching("32 hexadecimal digits", /^[\da-f]{32}$/i),
  base64url: matching("base64url", /^[\w-]+=*$/),
  secret: {
    expected: `at least ${secretLengthMin} characters`,
    accepts: (text) => text.length >= secretLengthMin,
  },
  letters3: matching("three letters", /^[a-z]{3}$/i),
  pathPair: matching("CERTIFICATE.pem:KEY.pem", /^[^:]+:[^:]+$/),
  relay: {
    expected: "NAME=http(s)://HOST:PORT",
    accepts(text) {
      const [, url] = /^[a-z0-9-]{1,32}=(https?:\/\/[^/]+)\/?$/i.exec(text) ?? [];
      return url !== undefined && URL.canParse(url);
    },
  },
  duration: matching("a number with s, m, h or d, such as 6h,", durationPattern),
  databaseUrl: matching("postgres://… or sqlite:PATH", /^(?:postgres(?:ql)?:\/\/|sqlite:)./),
} as const satisfies Record<string, Form>;

function isNetwork(text: string): boolean {
  const [address = "", length, ...more] = text.split("/");
  const bits = isIPv4(address) ? 32 : 128;
  const isLength = length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits);
  return isIP(address) !== 0 && isLength && more.length === 0;
}

function isResolver(text: string): boolean {
  if (isIP(text) !== 0) return true;
  const match = /^\[([^\]]+)\]:(\d{1,5})$/.exec(text) ?? /^([^:]+):(\d{1,5})$/.exec(text);
  return match !== null && isIP(match[1]!) !== 0 && Number(match[2]) >= 1 && Number(match[2]) <= 65_535;
}

function isUrl(text: string, ...protocols: readonly string[]): boolean {
  return URL.canParse(text) && protocols.includes(new URL(text).protocol);
}
