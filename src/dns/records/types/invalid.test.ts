import { describe, expect, it } from "vitest";
import { DomainError } from "../../../platform/domain-error.ts";
import { recordTypeNames, recordTypes, type RecordTypeName } from "./record-types.ts";

const sha1 = "2bb183af".repeat(5);
const sha256 = "0a1b2c3d".repeat(8);
const long = "a123456.".repeat(32);

/** Content that each type rejects. */
const invalid: Record<RecordTypeName, (string | undefined)[]> = {
  A: [
    "192.0.2.999",
    "192.0.2.256",
    "192.000.002.01",
    "::1",
    "10.0.1",
    "10!",
    "host.example",
    "192.0.2.1 192.0.2.2",
    "0x7f000001",
    "",
    undefined,
  ],
  AAAA: [
    "::g",
    "1:1:1:1:1:1:1:1:",
    "1:1:1:1:1:1:1:1:1",
    "fe80::1%eth0",
    "192.0.2.1",
    "[::1]",
    "1::2::3",
    "12345::",
    "",
  ],
  CAA: [
    '256 issue "ca.example.net"',
    '-1 issue "ca.example.net"',
    "0 issue",
    '0 is-sue "ca.example.net"',
    '0 issue "ca.example.net',
    '0 issue "not a domain"',
    '0 issue "ca..example"',
    '0 issue "ca.example.net; =x"',
    '0 iodef "security@example.com"',
    '0 iodef "mailto:nobody"',
    '0 issue "a" "b"',
    `0 contactemail "${"x".repeat(1025)}"`,
    '0 contactemail "ü"',
  ],
  CERT: [
    "6 0 AQIDBA==",
    "65536 0 0 AQIDBA==",
    "6 0 256 AQIDBA==",
    "NONE 0 0 AQIDBA==",
    "6 0 0 AQ!D",
    "6 0 0 AQI",
    "6 0 0",
  ],
  CNAME: [
    "10 example.com.",
    "@.",
    "192.0.2.1",
    "exa mple.com",
    "a..example",
    ".",
    long,
    `${"l".repeat(64)}.example`,
    "-a.example",
    "a-.example",
    "http://example.com",
    "$url",
    "a.b\\.c",
    "",
  ],
  DNSKEY: [
    "a 3 13 AQID",
    "257 b 13 AQID",
    "257 3 c AQID",
    "257 3 13 A",
    "257 2 13 AQID",
    "0 3 8 AQID",
    "258 3 8 AQID",
    "257 3 256 AQID",
    "257 3 13",
  ],
  DS: [
    `a 8 1 ${sha1}`,
    `-6454 8 1 ${sha1}`,
    `65536 8 1 ${sha1}`,
    `6454 b 1 ${sha1}`,
    `6454 8 c ${sha1}`,
    "6454 8 1 d",
    `6454 8 0 ${sha1}`,
    `6454 8 3 ${sha256}`,
    "6454 8 1 aabbccddeeff",
    `6454 8 2 ${sha1}`,
    `6454 8 4 ${sha256}`,
  ],
  HTTPS: [
    "0 svc.example. alpn=h2",
    "1 . ipv4hint=192.0.2.1 ipv4hint=192.0.2.2",
    "65536 .",
    "-1 .",
    "1",
    "one .",
    "1 192.0.2.1",
    "1 . no-default-alpn",
    "1 . alpn=",
    "1 . port=65536",
    "1 . ipv4hint=2001:db8::1",
    "1 . ipv6hint=192.0.2.1",
    "1 . ech=%%%",
    "1 . mandatory=port",
    "1 . mandatory=mandatory",
    "1 . mandatory=port,port port=1",
    "1 . unknown=1",
    "1 . key1=h2",
    "1 . key65535=x",
    "1 . key01=x",
    '1 . alpn="h2',
  ],
  SVCB: [
    "0 svc.example. keys=val",
    '2 svc.example. port="1" port="2"',
    "1 svc..example",
    "1 . dohpath=dns-query{?dns}",
    "1 . dohpath=/dns-query",
    "1 . ohttp=1",
    "1 . no-default-alpn=1 alpn=h2",
    "",
  ],
  LOC: [
    "23 12 61.000 N 42 22 48.500 W 65.00m 20.00m 10.00m 10.00m",
    "23 60 0 N 42 22 48.500 W 65.00m",
    "91 N 0 E 0m",
    "90 0 0.001 N 0 E 0m",
    "0 N 180 1 E 0m",
    "0 N 181 E 0m",
    "0 E 0 N 0m",
    "0 N 0 E -100000.01m",
    "0 N 0 E 42849672.96m",
    "0 N 0 E 0m 90000000.01m",
    "0 N 0 E",
    "foo",
    "192.0.2.1",
    "",
  ],
  MX: [
    "10",
    "mail.example.com",
    "-5 mail.example.",
    "65536 mail.example.",
    "10 _mail.example.com.",
    "10 $url.",
    "10 192.0.2.1",
    "10 a b",
    "1.5 mail.example.",
    "",
  ],
  NAPTR: [
    '100 50 "s" "" _z3950._tcp.example.com.',
    '100 50 3 2 "z3950+I2L+I2C" "" _z3950._tcp.example.com.',
    '65536 50 "s" "x" "" .',
    '1 -1 "s" "x" "" .',
    '1 1 "su" "x" "" .',
    '1 1 "!" "x" "" .',
    '1 1 "s" "x y" "" .',
    '1 1 "s" "x" "!a!b!" host.example.',
    '1 1 "s" "x" "!a!b!',
    `1 1 "s" "x" "${"r".repeat(256)}" .`,
  ],
  NS: ["192.0.2.1", "_ns.example.com.", ".", "ns1 example.com", "*.example.com", "ns1.example.com..", ""],
  OPENPGPKEY: ["1 2 3", "AQI", "A===", "Ä", ""],
  PTR: ['"host.example.com."', "10 host.example.com.", "*.example.com.", "."],
  SMIMEA: ["3 1 0 aGVsbG8gd29ybGQh", "3 1 0 abc", `3 1 1 ${sha1}`, "256 1 0 ab", "3 1 0"],
  SRV: [
    "0 0 0 0",
    "5061 host.example.com.",
    "0 0 16920 $url.",
    "65536 0 0 .",
    "0 65536 0 .",
    "0 0 65536 .",
    "0 0 0",
    "0 0 -1 .",
    "0 0 0 . more",
    "0 0 0 192.0.2.1",
    "1 2 3",
  ],
  SSHFP: [
    "aabbcceeddff",
    `5 1 ${sha1}`,
    `1 3 ${sha256}`,
    "1 1 aabbccddeeff",
    `1 2 ${sha1}`,
    `4 1 ${sha256}`,
    `4 2 ${"zz".repeat(32)}`,
  ],
  TLSA: [
    "3 1 1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    `3 1 1 ${sha1}`,
    `3 1 2 ${sha256}`,
    "256 0 0 ab",
    "0 256 0 ab",
    "0 0 256 ab",
    "3 1 0 xyz0",
  ],
  TXT: [
    '"foo',
    '"foo" bar',
    "foo\nbar",
    '"foo\nbar"',
    '"\u0000" "NUL"',
    String.raw`"\256"`,
    String.raw`"\25"`,
    String.raw`trailing\ `.trim(),
    String.raw`a\1b`,
    "\ud800",
    "x".repeat(2049),
    `"${"x".repeat(1024)}" "${"y".repeat(1025)}"`,
    '"" '.repeat(256),
    "",
    "   ",
    undefined,
  ],
  URI: [
    '"1" "2" "3"',
    '10 1 ""',
    '10 1 "no scheme"',
    "10 1 www.example.com",
    '65536 1 "ftp://a.example/"',
    '1 65536 "ftp://a.example/"',
    '1 "ftp://a.example/"',
    `1 1 "https://a.example/${"x".repeat(2048)}"`,
  ],
};

const faultOf = (
  type: RecordTypeName,
  input: Parameters<(typeof recordTypes)[RecordTypeName]["parse"]>[0],
): DomainError => {
  try {
    recordTypes[type].parse(input);
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
  throw new Error(`${type} took ${JSON.stringify(input)}`);
};

describe.each(recordTypeNames)("%s", (type) => {
  it.each(invalid[type])("rejects %j", (content) => {
    const fault = faultOf(type, { content });
    expect(fault).toMatchObject({
      pointer: expect.stringMatching(/^\/body\/(content|priority)$/) as string,
    });
    expect(fault.message).toMatch(/ but received /);
  });

  it("rejects unknown fields of data by name", () => {
    const content = "0 0 0 0";
    const fault = faultOf(type, { content, data: { colour: "red" } });
    expect(fault).toMatchObject({ kind: "dns.unknownData", pointer: "/body/data/colour" });
    expect(fault.message).toContain('"colour"');
  });
});

it("has more than a hundred cases", () => {
  expect(Object.values(invalid).flat().length).toBeGreaterThanOrEqual(110);
});

describe("fields of data", () => {
  const cases: [type: RecordTypeName, data: Record<string, unknown>, field: string, expected: string][] = [
    ["CAA", { flags: 300, tag: "issue", value: "ca.example" }, "flags", "a whole number from 0 to 255"],
    ["CAA", { flags: 0, tag: "issue" }, "value", "printable ASCII"],
    ["CAA", { flags: true, tag: "issue", value: ";" }, "flags", "a whole number"],
    ["CERT", { type: 1, key_tag: 1, algorithm: 8, certificate: "!" }, "certificate", "base64"],
    ["DNSKEY", { flags: 257, protocol: 4, algorithm: 8, public_key: "AQID" }, "protocol", "3"],
    ["DS", { key_tag: 1, algorithm: 8, digest_type: 2, digest: "ab" }, "digest", "64 hexadecimal digits"],
    ["HTTPS", { priority: "", target: ".", value: "" }, "priority", "a whole number"],
    ["HTTPS", { priority: null, target: ".", value: "" }, "priority", "a whole number"],
    ["HTTPS", { priority: 1, target: 5, value: "" }, "target", "a host name"],
    ["HTTPS", { priority: 1, target: ".", value: ["alpn=h2"] }, "value", "text"],
    [
      "LOC",
      { lat_degrees: 1, lat_direction: "X", long_degrees: 1, long_direction: "E" },
      "lat_direction",
      "N or S",
    ],
    [
      "LOC",
      { lat_degrees: 1.5, lat_direction: "N", long_degrees: 1, long_direction: "E" },
      "lat_degrees",
      "a whole number",
    ],
    [
      "LOC",
      { lat_degrees: "", lat_direction: "N", long_degrees: 1, long_direction: "E" },
      "lat_degrees",
      "a whole number",
    ],
    [
      "LOC",
      { lat_degrees: true, lat_direction: "N", long_degrees: 1, long_direction: "E" },
      "lat_degrees",
      "a whole number",
    ],
    [
      "NAPTR",
      { order: 1, preference: 1, flags: "s", service: "x", regex: "!a!b!", replacement: "a" },
      "replacement",
      '"."',
    ],
    [
      "SRV",
      { priority: 1, weight: 1, port: 99_999, target: "a.example" },
      "port",
      "a whole number from 0 to 65535",
    ],
    ["SRV", { weight: 1, port: 1, target: "a.example" }, "priority", "a whole number"],
    ["SSHFP", { algorithm: 5, type: 1, fingerprint: sha1 }, "algorithm", "one of 1, 2, 3, 4, 6"],
    [
      "TLSA",
      { usage: 3, selector: 1, matching_type: 1, certificate: "ab" },
      "certificate",
      "64 hexadecimal digits",
    ],
    ["URI", { weight: 1, target: 7 }, "target", "a URI"],
  ];
  it.each(cases)("%s %j: %s", (type, data, field, expected) => {
    const fault = faultOf(type, { data, ...(type === "URI" ? { priority: 1 } : {}) });
    expect(fault).toMatchObject({ kind: "dns.invalidData", pointer: `/body/data/${field}` });
    expect(fault.message).toContain(expected);
  });

  it("report a missing priority at its own field", () => {
    expect(faultOf("MX", { content: "mail.example" })).toMatchObject({
      kind: "dns.noPriority",
      pointer: "/body/priority",
    });
    expect(faultOf("MX", { content: "mail.example", priority: 65_536 })).toMatchObject({
      kind: "dns.badPriority",
    });
    expect(faultOf("MX", { content: "mail.example", priority: 1.5 })).toMatchObject({
      kind: "dns.badPriority",
    });
    const data = { weight: 1, target: "https://a.example/" };
    expect(faultOf("URI", { data })).toMatchObject({ kind: "dns.noPriority", pointer: "/body/priority" });
    expect(faultOf("URI", { data, priority: -1 })).toMatchObject({ kind: "dns.badPriority" });
  });
});

it("has kinds of its own for the types whose content has codes of its own", () => {
  expect(faultOf("A", { content: "10.0.1" })).toMatchObject({
    kind: "dns.badContent",
    message: 'Content for A record must be a valid IPv4 address but received "10.0.1"',
  });
  expect(faultOf("AAAA", { content: "10.0.1" })).toMatchObject({ kind: "dns.badAaaa" });
  expect(faultOf("CNAME", { content: "a b" })).toMatchObject({ kind: "dns.badCname" });
  expect(faultOf("MX", { content: "192.0.2.1", priority: 1 })).toMatchObject({ kind: "dns.badMx" });
});
