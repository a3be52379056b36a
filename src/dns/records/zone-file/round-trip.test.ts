import { fc } from "../../../../test/helpers/properties.ts";
import { describe, expect, it } from "vitest";
import { plans } from "../../../control/zones/plans.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import { parseRecord, type RecordFields, type RecordInput } from "../record.ts";
import { recordTypeNames } from "../types/record-types.ts";
import { atOnce } from "../../../platform/timers/slices.ts";
import { readImport } from "./import.ts";
import { printZoneFile } from "./print.ts";

const zone = { name: "example.com", nameServers: ["a.ns.example", "b.ns.example"], serial: 7 } as Zone;
const parse = (input: RecordInput): RecordFields => parseRecord(input, zone.name, plans.enterprise);
const print = (records: readonly RecordFields[]): string => atOnce(printZoneFile(zone, records, 0));
const read = (file: string): RecordFields[] =>
  atOnce(readImport(file, zone.name, plans.enterprise, false)).entries.map(({ fields }) => fields);

const uint16 = fc.nat(65_535);
const label = fc.stringMatching(/^[a-z0-9_]([a-z0-9-]{0,10}[a-z0-9])?$/);
const host = fc
  .array(fc.stringMatching(/^[a-z]([a-z0-9-]{0,8}[a-z0-9])?$/), { minLength: 1, maxLength: 3 })
  .map((labels) => labels.join("."));
const hex = (length: number) => fc.stringMatching(new RegExp(`^[0-9a-f]{${length}}$`));
const base64 = fc
  .uint8Array({ minLength: 1, maxLength: 60 })
  .map((bytes) => Buffer.from(bytes).toString("base64"));
const printable = (maxLength: number) => fc.string({ unit: "grapheme-ascii", maxLength });
const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 });

/** The value of a record of each type. */
const values: Record<(typeof recordTypeNames)[number], fc.Arbitrary<Partial<RecordInput>>> = {
  A: fc.record({ content: fc.ipV4(), proxied: fc.boolean() }),
  AAAA: fc.record({ content: fc.ipV6(), proxied: fc.boolean() }),
  CAA: fc.record({
    data: fc.record({ flags: fc.nat(255), tag: fc.constantFrom("contactemail", "x1"), value: printable(80) }),
  }),
  CERT: fc.record({
    data: fc.record({ type: uint16, key_tag: uint16, algorithm: fc.nat(255), certificate: base64 }),
  }),
  CNAME: fc.record({
    content: host,
    proxied: fc.boolean(),
    settings: fc.record({ flatten_cname: fc.boolean() }),
  }),
  DNSKEY: fc.record({
    data: fc.record({
      flags: fc.constantFrom(256, 257),
      protocol: fc.constant(3),
      algorithm: fc.nat(255),
      public_key: base64,
    }),
  }),
  DS: fc.record({
    data: fc.record({
      key_tag: uint16,
      algorithm: fc.nat(255),
      digest_type: fc.constant(2),
      digest: hex(64),
    }),
  }),
  HTTPS: fc.record({
    data: fc.record({
      priority: fc.integer({ min: 1, max: 9 }),
      target: host,
      value: fc.constantFrom("", "alpn=h2,h3 port=1", 'key99="a b;(c)"'),
    }),
  }),
  SVCB: fc.record({
    data: fc.record({ priority: fc.constant(0), target: fc.oneof(host, fc.constant(".")) }),
  }),
  LOC: fc.record({
    data: fc.record({
      lat_degrees: fc.nat(89),
      lat_minutes: fc.nat(59),
      lat_seconds: fc.nat(59_999).map((ms) => ms / 1000),
      lat_direction: fc.constantFrom("N", "S"),
      long_degrees: fc.nat(179),
      long_direction: fc.constantFrom("E", "W"),
      altitude: fc.integer({ min: -10_000_000, max: 10_000_000 }).map((cm) => cm / 100),
    }),
  }),
  MX: fc.record({ content: fc.oneof(host, fc.constant(".")), priority: uint16 }),
  NAPTR: fc.record({
    data: fc.record({
      order: uint16,
      preference: uint16,
      flags: fc.constantFrom("", "U"),
      service: fc.constantFrom("", "E2U+sip"),
      regex: printable(60),
      replacement: fc.constant(""),
    }),
  }),
  NS: fc.record({ content: host }),
  OPENPGPKEY: fc.record({ content: base64 }),
  PTR: fc.record({ content: host }),
  SMIMEA: fc.record({
    data: fc.record({
      usage: fc.nat(255),
      selector: fc.nat(255),
      matching_type: fc.constant(1),
      certificate: hex(64),
    }),
  }),
  SRV: fc.record({
    name: label.map((each) => `_s._tcp.${each}`),
    data: fc.record({ priority: uint16, weight: uint16, port: uint16, target: host }),
  }),
  SSHFP: fc.record({
    data: fc.record({ algorithm: fc.constant(4), type: fc.constant(2), fingerprint: hex(64) }),
  }),
  TLSA: fc.record({
    data: fc.record({
      usage: fc.nat(255),
      selector: fc.nat(255),
      matching_type: fc.constant(0),
      certificate: hex(8),
    }),
  }),
  TXT: fc.record({
    content: fc.oneof(
      text,
      fc.array(text).map((all) => all.map((each) => `"${each.replace(/[\\"]/g, "\\$&")}"`).join(" ")),
    ),
  }),
  URI: fc.record({
    priority: uint16,
    data: fc.record({ weight: uint16, target: fc.webUrl({ withQueryParameters: true }) }),
  }),
};

const notes = fc.record({
  ttl: fc.oneof(fc.constant(1), fc.integer({ min: 30, max: 86_400 })),
  comment: fc.option(fc.string({ unit: "grapheme", maxLength: 60 })),
  tags: fc.array(
    fc
      .tuple(label, fc.option(fc.string({ unit: "grapheme", maxLength: 20 })))
      .map(([name, value]) => (value === null ? name : `${name}:${value}`)),
    { maxLength: 4 },
  ),
});
/** Any record that the API accepts. */
const records = fc.constantFrom(...recordTypeNames).chain((type) =>
  fc
    .tuple(
      fc.oneof(
        label,
        label.map((each) => `*.${each}`),
      ),
      values[type],
      notes,
    )
    .map(([name, value, more]) => {
      try {
        return parse({ type, name, ...value, ...more });
      } catch {
        return undefined;
      }
    }),
);

describe("an export", () => {
  it("is imported as the same records of every type, with comments, tags and proxying", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(fc.array(records, { maxLength: 8 }), (all) => {
        const some = all.filter((record) => record !== undefined);
        for (const { type } of some) seen.add(type);
        expect(read(print(some))).toEqual(some);
      }),
      { numRuns: 400 },
    );
    expect([...seen].sort()).toEqual([...recordTypeNames].sort());
  });

  it.each<RecordInput>([
    { type: "A", name: "@", content: "192.0.2.1", comment: "cf_tags=", tags: ["a:%20 b"] },
    { type: "A", name: "@", content: "192.0.2.1", comment: " x cf_tags=y ", proxied: true },
    { type: "NS", name: "@", content: "own.example" },
    { type: "CNAME", name: "c", content: "t.example", settings: { flatten_cname: true, ipv4_only: true } },
    { type: "TXT", name: "t", content: "x".repeat(600) },
    { type: "TXT", name: "t", content: String.raw`"a;b" "\"(" "\010"` },
  ])("%j", (input) => {
    const record = parse(input);
    expect(read(print([record]))).toEqual([record]);
  });

  it("has this form", () => {
    const file = print([
      parse({
        type: "A",
        name: "www",
        content: "192.0.2.1",
        proxied: true,
        comment: "the web",
        tags: ["team:web"],
      }),
      parse({ type: "MX", name: "@", content: "mail.example.com", priority: 10, ttl: 300 }),
    ]);
    expect(file.split("\n").slice(3)).toEqual([
      "$ORIGIN example.com.",
      "",
      "example.com.\t3600\tIN\tSOA\ta.ns.example. dns.example.com. 7 10000 2400 604800 1800",
      "example.com.\t86400\tIN\tNS\ta.ns.example.",
      "example.com.\t86400\tIN\tNS\tb.ns.example.",
      "",
      "www.example.com.\t1\tIN\tA\t192.0.2.1 ; the web cf_tags=team:web,cf-proxied:true",
      "example.com.\t300\tIN\tMX\t10 mail.example.com. ; cf_tags=",
      "",
    ]);
  });
});
