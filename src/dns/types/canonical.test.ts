import { describe, expect, it } from "vitest";
import { recordTypeNames, recordTypes, type RecordTypeName } from "./index.ts";
import type { Value } from "./type.ts";

/** Content as a client or a zone file may write it, and the one form in which it is kept; the priority stands first. */
const canonical: [type: RecordTypeName, written: string, kept: string][] = [
  ["A", "192.0.2.1", "192.0.2.1"],
  ["A", " 203.0.113.255\n", "203.0.113.255"],
  ["A", "0.0.0.0", "0.0.0.0"],
  ["AAAA", "0000::0000:0001", "::1"],
  ["AAAA", "fe80::0:0:1", "fe80::1"],
  ["AAAA", "2001:DB8:0:0:8:800:200C:417A", "2001:db8::8:800:200c:417a"],
  ["AAAA", "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
  ["AAAA", "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
  ["AAAA", "::ffff:192.0.2.1", "::ffff:c000:201"],
  ["AAAA", "2001:db8::198.51.100.4", "2001:db8::c633:6404"],
  ["CAA", '0128 "issue" "ca.example.net"', '128 issue "ca.example.net"'],
  ["CAA", "0 ISSUE ca.example.net", '0 issue "ca.example.net"'],
  ["CAA", '0 issuewild ";"', '0 issuewild ";"'],
  ["CAA", '0 iodef "mailto:security@example.com"', '0 iodef "mailto:security@example.com"'],
  ["CAA", '0 iodef "https://iodef.example.com/"', '0 iodef "https://iodef.example.com/"'],
  [
    "CAA",
    '0 issue "ca.example.net; accounturi=https://ca.example.net/acct/1; validationmethods=dns-01"',
    '0 issue "ca.example.net; accounturi=https://ca.example.net/acct/1; validationmethods=dns-01"',
  ],
  ["CAA", '0 contactemail "dns@example.com"', '0 contactemail "dns@example.com"'],
  ["CERT", "06 0 0 AQIDBA==", "6 0 0 AQIDBA=="],
  ["CERT", "PKIX 65535 RSASHA256 AQID BA==", "1 65535 8 AQIDBA=="],
  ["CERT", "ipgp 0 0 AQIDBB==", "6 0 0 AQIDBA=="],
  ["CNAME", "Target.Example.COM.", "target.example.com"],
  ["CNAME", "_a1b2.acm.example.net", "_a1b2.acm.example.net"],
  ["CNAME", "münchen.example", "xn--mnchen-3ya.example"],
  ["CNAME", "1.2.3.4.in-addr.arpa", "1.2.3.4.in-addr.arpa"],
  ["DNSKEY", "0256  03  08  AwEAAc3D 4eX/ +AQ=", "256 3 8 AwEAAc3D4eX/+AQ="],
  ["DNSKEY", "257 3 ECDSAP256SHA256 oJB1W6WNGv+ldvQ3WDG0 MQ==", "257 3 13 oJB1W6WNGv+ldvQ3WDG0MQ=="],
  ["DNSKEY", "385 3 ED25519 AQID", "385 3 15 AQID"],
  ["DS", `060485 5 1 ${"2BB183AF".repeat(5)}`, `60485 5 1 ${"2bb183af".repeat(5)}`],
  [
    "DS",
    `12345 ECDSAP256SHA256 2 ${"AB".repeat(16)} ${"cd".repeat(16)}`,
    `12345 13 2 ${"ab".repeat(16)}${"cd".repeat(16)}`,
  ],
  ["DS", `1 14 4 ${"0f".repeat(48)}`, `1 14 4 ${"0f".repeat(48)}`],
  ["HTTPS", "01 . aLPn=h2,h3", '1 . alpn="h2,h3"'],
  [
    "HTTPS",
    '1 . alpn="h3,h2" ipv4hint="192.0.2.1" ipv6hint="2001:DB8::0"',
    '1 . alpn="h3,h2" ipv4hint="192.0.2.1" ipv6hint="2001:db8::"',
  ],
  ["HTTPS", "0 Pool.Example.NET.", "0 pool.example.net"],
  ["HTTPS", "1 . ech=AQIDBA== alpn=h2", '1 . alpn="h2" ech="AQIDBA=="'],
  ["HTTPS", "1 . no-default-alpn alpn=h2", '1 . alpn="h2" no-default-alpn'],
  [
    "HTTPS",
    "2  svc.example.net   mandatory=port,alpn port=0443 alpn=h2",
    '2 svc.example.net mandatory="alpn,port" alpn="h2" port="443"',
  ],
  [
    "SVCB",
    "1 dns.example.net alpn=dot dohpath=/dns-query{?dns}",
    '1 dns.example.net alpn="dot" dohpath="/dns-query{?dns}"',
  ],
  ["SVCB", '3 svc.example.net key65333="a b" key9=x', '3 svc.example.net key9="x" key65333="a b"'],
  ["SVCB", "16 _8443._foo.api.example.com", "16 _8443._foo.api.example.com"],
  ["SVCB", "1 . ohttp", "1 . ohttp"],
  ["LOC", "51 30 12.748 N 0 7 39.612 W 15m", "51 30 12.748 N 0 7 39.612 W 15.00m 1.00m 10000.00m 10.00m"],
  [
    "LOC",
    "052 022 23.000 N 4 53 32 E -2.00m 0m 10000m 10m",
    "52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000.00m 10.00m",
  ],
  ["LOC", "90 N 180 w 0", "90 0 0.000 N 180 0 0.000 W 0.00m 1.00m 10000.00m 10.00m"],
  ["LOC", "37 46 46 n 122 23 35 W 0m 100m 0m 0m", "37 46 46.000 N 122 23 35.000 W 0.00m 100.00m 0.00m 0.00m"],
  ["LOC", "1 2 S 3 4 5.5 E 100.5m 2m", "1 2 0.000 S 3 4 5.500 E 100.50m 2.00m 10000.00m 10.00m"],
  ["MX", "010 Mail.Example.COM.", "10 mail.example.com"],
  ["MX", "0 .", "0 ."],
  ["MX", "65535 mx", "65535 mx"],
  ["MX", "10 mx.bücher.example", "10 mx.xn--bcher-kva.example"],
  [
    "NAPTR",
    '100  50  "s"  "z3950+I2L+I2C"     ""  _z3950._tcp.example.com.',
    '100 50 "s" "z3950+I2L+I2C" "" _z3950._tcp.example.com',
  ],
  [
    "NAPTR",
    '10 100 u E2U+sip "!^.*$!sip:info@example.com!" .',
    '10 100 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .',
  ],
  [
    "NAPTR",
    String.raw`1 2 "U" "SIP+D2U" "!^(\\d+)$!tel:\\1!" .`,
    String.raw`1 2 "U" "SIP+D2U" "!^(\\d+)$!tel:\\1!" .`,
  ],
  ["NAPTR", '1 2 "" "" "" Other.example.', '1 2 "" "" "" other.example'],
  ["NS", "NS1.Example.Net.", "ns1.example.net"],
  ["NS", "ns-1.example.net", "ns-1.example.net"],
  ["OPENPGPKEY", "mQENBFVHm5sBCADX Xl7q 8f3Y", "mQENBFVHm5sBCADXXl7q8f3Y"],
  ["PTR", "Host.Example.COM.", "host.example.com"],
  ["PTR", "_service._tcp.example.com", "_service._tcp.example.com"],
  ["SMIMEA", "3 01 0 AAbbCCdd", "3 1 0 aabbccdd"],
  ["SMIMEA", `3 0 1 ${"0A".repeat(32)}`, `3 0 1 ${"0a".repeat(32)}`],
  ["SRV", "0 000 0 .", "0 0 0 ."],
  ["SRV", "10 5 05060 SIP.Example.com.", "10 5 5060 sip.example.com"],
  ["SRV", "65535 65535 65535 _host.example.com", "65535 65535 65535 _host.example.com"],
  ["SSHFP", `4 2 ${"AbCd".repeat(16)}`, `4 2 ${"abcd".repeat(16)}`],
  [
    "SSHFP",
    `1 1 ${"12345678".repeat(2)} ${"9ABCDEF0".repeat(3)}`,
    `1 1 ${"12345678".repeat(2)}${"9abcdef0".repeat(3)}`,
  ],
  ["TLSA", `003 0001 1 ${"0A1B".repeat(16)}`, `3 1 1 ${"0a1b".repeat(16)}`],
  ["TLSA", `3 0 2 ${"ff".repeat(32)} ${"FF".repeat(32)}`, `3 0 2 ${"ff".repeat(64)}`],
  ["TLSA", "255 255 0 00", "255 255 0 00"],
  ["TLSA", "0 0 255 ABCD", "0 0 255 abcd"],
  ["TXT", "v=spf1 include:example.com ~all", '"v=spf1 include:example.com ~all"'],
  ["TXT", '"foo"   "bar"', '"foo" "bar"'],
  ["TXT", '"foo""bar"', '"foo" "bar"'],
  ["TXT", '"" "" "foo"', '"" "" "foo"'],
  ["TXT", '{"a":1}', String.raw`"{\"a\":1}"`],
  ["TXT", String.raw`a\"b\;c`, String.raw`"a\"b\;c"`],
  ["TXT", String.raw`"\000\010\255"`, String.raw`"\000\010\255"`],
  ["TXT", "攻击已持续了两天 🧥", '"攻击已持续了两天 🧥"'],
  ["TXT", '""', '""'],
  ["TXT", "x".repeat(600), `"${"x".repeat(600)}"`],
  ["URI", '10 01 "ftp://ftp.example.com/public"', '10 1 "ftp://ftp.example.com/public"'],
  ["URI", "65535 0 https://www.example.com/?a=b;c", '65535 0 "https://www.example.com/?a=b;c"'],
  ["URI", '1 1 "mailto:someone@example.com"', '1 1 "mailto:someone@example.com"'],
];

const kept = ({ content, priority }: Value, type: RecordTypeName): string =>
  priority === undefined || type === "HTTPS" || type === "SVCB" ? content : `${priority} ${content}`;

describe.each(canonical)("%s %j", (type, written, expected) => {
  const value = recordTypes[type].parse({ content: written });

  it(`is kept as ${expected}`, () => {
    expect(kept(value, type)).toBe(expected);
  });

  it("is the same again from what is kept, and from its members", () => {
    expect(recordTypes[type].parse({ content: expected })).toEqual(value);
    expect(recordTypes[type].parse({ content: value.content, priority: value.priority })).toEqual(value);
    if (value.data !== undefined) {
      expect(recordTypes[type].parse({ data: value.data, priority: value.priority })).toEqual(value);
    }
  });
});

it("covers every type", () => {
  expect(new Set(canonical.map(([type]) => type))).toEqual(new Set(recordTypeNames));
  expect(canonical.length).toBeGreaterThanOrEqual(75);
});
