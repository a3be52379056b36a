import type { FieldSource, Predicate } from "../src/rules/language.ts";

/** A rule, and the same predicate written by hand in JavaScript over the same fields. */
export interface PredicatePair {
  name: string;
  expression: string;
  byHand: Predicate;
}

const text = (fields: FieldSource, name: string): string => fields[name] as string;

const v4Networks = [
  [10, 0, 0, 0, 8],
  [172, 16, 0, 0, 12],
  [192, 168, 0, 0, 16],
  [100, 64, 0, 0, 10],
  [169, 254, 0, 0, 16],
  [198, 18, 0, 0, 15],
  [203, 0, 113, 0, 24],
  [198, 51, 100, 0, 24],
  [192, 0, 2, 0, 24],
  [224, 0, 0, 0, 4],
  [173, 245, 48, 0, 20],
  [103, 21, 244, 0, 22],
  [103, 22, 200, 0, 22],
  [141, 101, 64, 0, 18],
  [108, 162, 192, 0, 18],
  [190, 93, 240, 0, 20],
] as const;
const v6Networks = ["2400:cb00::/32", "2606:4700::/32", "2803:f800::/32", "2405:b500::/32", "2a06:98c0::/29"];

const v4Ranges = v4Networks.map(([a, b, c, d, bits]) => {
  const first = ((a * 256 + b) * 256 + c) * 256 + d;
  return { first, last: first + 2 ** (32 - bits) - 1 };
});
const v6Ranges = v6Networks.map((network) => {
  const [address, bits] = network.split("/") as [string, string];
  const [high, low] = address.split(":").map((group) => Number.parseInt(group, 16)) as [number, number];
  const first = high * 65_536 + low;
  return { first, last: first + 2 ** (32 - Number(bits)) - 1 };
});

function inNetworks(ip: unknown): boolean {
  if (typeof ip === "number") {
    for (const { first, last } of v4Ranges) if (ip >= first && ip <= last) return true;
    return false;
  }
  const bytes = ip as string;
  const start =
    ((bytes.charCodeAt(0) << 24) |
      (bytes.charCodeAt(1) << 16) |
      (bytes.charCodeAt(2) << 8) |
      bytes.charCodeAt(3)) >>>
    0;
  for (const { first, last } of v6Ranges) if (start >= first && start <= last) return true;
  return false;
}

const pathPattern = /^\/api\/v[0-9]+\/users\/[0-9]+$/;
const botPattern = /bot/i;

export const predicatePairs: readonly PredicatePair[] = [
  {
    name: "host eq and starts_with(path)",
    expression: 'http.host eq "www.example.com" and starts_with(http.request.uri.path, "/api/")',
    byHand: (f) =>
      f["http.host"] === "www.example.com" && text(f, "http.request.uri.path").startsWith("/api/"),
  },
  {
    name: "country in {6} or asnum in {5}",
    expression:
      'ip.src.country in {"DE" "FR" "IT" "ES" "PT" "NL"} or ip.src.asnum in {13335 15169 16509 8075 32934}',
    byHand: (f) => {
      const country = f["ip.src.country"];
      if (country === "DE" || country === "FR" || country === "IT") return true;
      if (country === "ES" || country === "PT" || country === "NL") return true;
      const asn = f["ip.src.asnum"];
      return asn === 13_335 || asn === 15_169 || asn === 16_509 || asn === 8075 || asn === 32_934;
    },
  },
  {
    name: "ip.src in {21 networks}",
    expression: `ip.src in {${v4Networks.map(([a, b, c, d, bits]) => `${a}.${b}.${c}.${d}/${bits}`).join(" ")} ${v6Networks.join(" ")}}`,
    byHand: (f) => inNetworks(f["ip.src"]),
  },
  {
    name: "any(lower(accept)) and not cookie",
    expression:
      'any(lower(http.request.headers["accept"][*])[*] contains "text/html") and not http.cookie contains "session="',
    byHand: (f) => {
      const values = (f["http.request.headers"] as ReadonlyMap<string, readonly string[]>).get("accept");
      if (values === undefined) return false;
      for (const value of values) {
        if (value.toLowerCase().includes("text/html")) return !text(f, "http.cookie").includes("session=");
      }
      return false;
    },
  },
  {
    name: "path matches and not agent wildcard",
    expression:
      'http.request.uri.path matches "^/api/v[0-9]+/users/[0-9]+$" and not http.user_agent wildcard "*bot*"',
    byHand: (f) =>
      pathPattern.test(text(f, "http.request.uri.path")) && !botPattern.test(text(f, "http.user_agent")),
  },
];
