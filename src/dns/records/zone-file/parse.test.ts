import { describe, expect, it } from "vitest";
import { DomainError } from "../../../platform/domain-error.ts";
import { plans } from "../../../control/zones/plans.ts";
import { atOnce } from "../../../platform/timers/slices.ts";
import { readImport } from "./import.ts";
import { cpuMs } from "../../../../test/helpers/cpu-ms.ts";

const read = (file: string, proxied = false, plan = plans.enterprise) =>
  atOnce(readImport(file, "example.com", plan, proxied));
const lines = (file: string): string[] =>
  read(file).entries.map(
    ({ fields: { name, ttl, type, priority, content } }) =>
      `${name} ${ttl} ${type} ${priority === null ? "" : `${priority} `}${content}`,
  );
const faultOf = (file: string): string => {
  try {
    read(file);
  } catch (error) {
    if (error instanceof DomainError && error.kind === "dns.importFault") return error.message;
    throw error;
  }
  throw new Error("the file was taken");
};

describe("a zone file", () => {
  it("is parsed according to RFC 1035", () => {
    const file = `
$ORIGIN example.com.
$TTL 1h30m
@   IN SOA ns.example.net. hostmaster (
        2026010101 ; serial
        1d 2h 4w 300 )
    IN NS ns.example.net.
    IN MX 10 mail
    300 IN A 192.0.2.1
www A 192.0.2.2 ; the web
    IN 60 AAAA 2001:db8::1
ftp.example.com. CNAME www
$ORIGIN sub
a   TXT ( "one; two"
          three )
*   PTR @
`;
    expect(lines(file)).toEqual([
      "example.com 5400 MX 10 mail.example.com",
      "example.com 300 A 192.0.2.1",
      "www.example.com 5400 A 192.0.2.2",
      "www.example.com 60 AAAA 2001:db8::1",
      "ftp.example.com 5400 CNAME www.example.com",
      'a.sub.example.com 5400 TXT "one; two" "three"',
      "*.sub.example.com 5400 PTR sub.example.com",
    ]);
  });

  it("may have either line end, and none at the end of the file", () => {
    expect(lines("a A 192.0.2.1\r\n\tA 192.0.2.2")).toEqual([
      "a.example.com 1 A 192.0.2.1",
      "a.example.com 1 A 192.0.2.2",
    ]);
    expect(lines("")).toEqual([]);
    expect(lines("; nothing\n\n  \n")).toEqual([]);
  });

  it("may contain every type, with targets relative to the origin", () => {
    const file = `
_sip._tcp SRV 10 5 5060 sip
svc HTTPS 1 web alpn="h2,h3" port=443
svc SVCB 0 .
n NAPTR 100 50 "s" "SIP+D2U" "" _sip._udp
n NAPTR 100 51 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .
c CAA 0 issue "ca.example.net"
u URI 10 1 "https://www.example.com/;a"
l LOC 52 22 23 N 4 53 32 E -2m
d DS 1 8 1 2bb183af2bb183af 2bb183af2bb183af 2bb183af
k OPENPGPKEY AQID BAUG
t TXT v=DKIM1\\; "k=rsa"
`;
    expect(lines(file)).toEqual([
      "_sip._tcp.example.com 1 SRV 10 5 5060 sip.example.com",
      'svc.example.com 1 HTTPS 1 web.example.com alpn="h2,h3" port="443"',
      "svc.example.com 1 SVCB 0 .",
      'n.example.com 1 NAPTR 100 50 "s" "SIP+D2U" "" _sip._udp.example.com',
      'n.example.com 1 NAPTR 100 51 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .',
      'c.example.com 1 CAA 0 issue "ca.example.net"',
      'u.example.com 1 URI 10 1 "https://www.example.com/;a"',
      "l.example.com 1 LOC 52 22 23.000 N 4 53 32.000 E -2.00m 1.00m 10000.00m 10.00m",
      "d.example.com 1 DS 1 8 1 2bb183af2bb183af2bb183af2bb183af2bb183af",
      "k.example.com 1 OPENPGPKEY AQIDBAUG",
      't.example.com 1 TXT "v=DKIM1\\;" "k=rsa"',
    ]);
  });

  it("generates records", () => {
    expect(lines("$GENERATE 1-3 h$ A 192.0.2.$")).toEqual([
      "h1.example.com 1 A 192.0.2.1",
      "h2.example.com 1 A 192.0.2.2",
      "h3.example.com 1 A 192.0.2.3",
    ]);
    expect(lines("$GENERATE 8-12/2 h${0,3} 300 IN CNAME t${-8,2,x}")).toEqual([
      "h008.example.com 300 CNAME t00.example.com",
      "h010.example.com 300 CNAME t02.example.com",
      "h012.example.com 300 CNAME t04.example.com",
    ]);
    expect(lines("$GENERATE 10-10 ${0,4,n} TXT \\$$$ ${0,0,X} ${1,0,o}")).toEqual([
      'a.0.example.com 1 TXT "$$" "A" "13"',
    ]);
  });

  it("reads a word with many open braces once", () => {
    const beganMs = cpuMs();
    expect(faultOf(`$GENERATE 1-1 ${"${".repeat(50_000)} A 192.0.2.1`)).not.toBe("");
    // A search for the end of each brace took seconds.
    expect(cpuMs() - beganMs).toBeLessThan(500);
  });

  it("may contain the platform's own records", () => {
    const file =
      "@ SOA a. b. 1 2 3 4 5\n@ NS old.example.net.\nsub NS ns.example.net.\n@ NS own.example.net. ; cf_tags=\n";
    expect(lines(file)).toEqual(["sub.example.com 1 NS ns.example.net", "example.com 1 NS own.example.net"]);
  });

  it("states for each record whether it is proxied, or uses the import's default", () => {
    const file =
      "a A 192.0.2.1 ; cf_tags=cf-proxied:true\nb A 192.0.2.1 ; cf_tags=cf-proxied:false\nc A 192.0.2.1\nd TXT x\n";
    const proxied = (byDefault: boolean): boolean[] =>
      read(file, byDefault).entries.map(({ fields }) => fields.proxied);
    expect(proxied(false)).toEqual([true, false, false, false]);
    expect(proxied(true)).toEqual([true, false, true, false]);
  });

  it("keeps comments and tags of an export, but not other comments", () => {
    const file =
      "a A 192.0.2.1 ; the web cf_tags=team:web,old\nb A 192.0.2.1 ; only a note\nc A 192.0.2.1 ;cf_tags=x:1%20%25!2\n";
    expect(read(file).entries.map(({ fields: { comment, tags } }) => [comment, tags])).toEqual([
      ["the web", ["old", "team:web"]],
      [null, []],
      [null, ["x:1 %!2"]],
    ]);
  });

  it("has out-of-range TTLs adjusted with a message", () => {
    const { entries, notices } = read(
      "a 604800 A 192.0.2.1\nb 5 A 192.0.2.1\nc 1 A 192.0.2.1\n",
      false,
      plans.free,
    );
    expect(entries.map(({ fields }) => fields.ttl)).toEqual([86_400, 60, 1]);
    expect(notices).toEqual(["line 1: the TTL 604800 became 86400", "line 2: the TTL 5 became 60"]);
    const many = read(Array.from({ length: 50 }, (_, i) => `h${i} 604800 A 192.0.2.1`).join("\n")).notices;
    expect(many).toHaveLength(21);
    expect(many.at(-1)).toBe("and 30 more lines");
  });
});

describe("an invalid file is rejected with the line", () => {
  it.each([
    ["$INCLUDE other.zone", 1, "$INCLUDE directive not allowed"],
    ["a A 192.0.2.1\n$include x", 2, "$INCLUDE directive not allowed"],
    ["\n\na A nonsense", 3, "Content for A record must be a valid IPv4 address"],
    ["a BOGUS x", 1, 'DNS record type "BOGUS" is invalid'],
    ["a TYPE65280 \\# 0", 1, "is invalid"],
    ["  A 192.0.2.1", 1, "expected a name"],
    ["a", 1, "the line ends"],
    ["a IN", 1, "the line ends"],
    ["a 300 IN A", 1, "the line ends"],
    ["a CH A 192.0.2.1", 1, "expected the class IN but received CH"],
    ["a 300 400 A 192.0.2.1", 1, "is invalid"],
    ['a TXT "open', 1, "complete quotes"],
    ["a TXT x\\", 1, "complete quotes"],
    ["a TXT ( x", 1, "a parenthesis is not closed"],
    ["a TXT x )", 1, "a closing parenthesis has no opening one"],
    ["a A 192.0.2.1\nb TXT (\n x\n y", 2, "a parenthesis is not closed"],
    ["www.example.org. A 192.0.2.1", 1, "but is not inside example.com"],
    ["$ORIGIN example.org.\nwww A 192.0.2.1", 2, "but is not inside example.com"],
    ["$ORIGIN .\nwww A 192.0.2.1", 2, "but is not inside example.com"],
    ["$ORIGIN", 1, "expected one name"],
    ["$TTL x", 1, 'expected seconds after $TTL but received "x"'],
    ["$TTL", 1, "expected seconds"],
    ["$UNKNOWN x", 1, "expected $ORIGIN, $TTL or $GENERATE"],
    ["a b.c A 192.0.2.1", 1, "is invalid"],
    ["$GENERATE 1-3 h$ A", 1, "expected $GENERATE start-stop"],
    ["$GENERATE 3-1 h$ A 192.0.2.$", 1, "an ascending range"],
    ["$GENERATE 1-3/0 h$ A 192.0.2.$", 1, "an ascending range"],
    ["$GENERATE 0-65536 h$ A 192.0.2.1", 1, "at most 65536 records"],
    ["$GENERATE 1-2 h${x} A 192.0.2.1", 1, "expected offset"],
    ["$GENERATE 1-2 h${-5} A 192.0.2.1", 1, "expected offset"],
    ["$GENERATE 254-256 h$ A 192.0.2.$", 1, "valid IPv4 address"],
    [`a TXT ${"x".repeat(2049)}`, 1, "at most 2048 characters"],
    ["a A 192.0.2.1 ; cf_tags=bad!", 1, "names of 1 to 32"],
  ])("%j", (file, line, why) => {
    const message = faultOf(file);
    expect(message).toMatch(new RegExp(`^Zone file, line ${line}: `));
    expect(message).toContain(why);
  });

  it("also if an entry has too many characters, for memory, on one line or on several", () => {
    const why = "expected at most 65536 characters in an entry";
    expect(faultOf(`a A 192.0.2.1\na ${"1".repeat(20_000_000)}`)).toContain(`line 2: ${why}`);
    expect(faultOf(`a TXT (${'\n"x"'.repeat(30_000)})`)).toContain(why);
  });

  it("also if it generates too many records", () => {
    const range = "$GENERATE 1-65536 h$ A 192.0.2.1\n";
    expect(faultOf(range.repeat(4))).toMatch(/line 4: expected at most 200000 records/);
    const long = `$GENERATE 1-65536 h TXT ${"x".repeat(60_000)}`;
    expect(faultOf(long)).toContain("line 1: expected at most 16777216 characters from $GENERATE");
  });

  it("also if it has too many lines, or too many records that the zone has by itself", () => {
    expect(faultOf("\n".repeat(1_000_001))).toContain("line 1000001: expected at most 1000000 lines");
    const soas = "@ SOA a\n".repeat(200_001);
    expect(faultOf(soas)).toContain("line 200001: expected at most 200000 records");
  });

  it("is read in steps, between which others have their turn, and so are generated and skipped records", () => {
    const steps = (file: string): number =>
      [...readImport(file, "example.com", plans.enterprise, false)].length;
    expect(steps("\n".repeat(1000))).toBe(1000);
    expect(steps("@ SOA a\n".repeat(1000))).toBe(1000);
    expect(steps("$GENERATE 1-1000 h$ A 192.0.2.1")).toBe(2001);
  });
});
