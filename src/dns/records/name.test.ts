import { fc } from "../../../test/helpers/properties.ts";
import { describe, expect, it } from "vitest";
import { looksForeign, parseRecordName } from "./name.ts";

const zone = "example.com";

describe("a record's name", () => {
  it.each([
    ["@", "example.com"],
    ["example.com", "example.com"],
    ["Example.COM.", "example.com"],
    ["www", "www.example.com"],
    ["WWW.example.com", "www.example.com"],
    ["www.example.com.", "www.example.com"],
    ["a.b", "a.b.example.com"],
    ["*", "*.example.com"],
    ["*.a", "*.a.example.com"],
    ["*.example.com", "*.example.com"],
    ["_dmarc", "_dmarc.example.com"],
    ["_sip._tcp", "_sip._tcp.example.com"],
    ["a--b", "a--b.example.com"],
    ["münchen", "xn--mnchen-3ya.example.com"],
    ["MÜNCHEN.example.com", "xn--mnchen-3ya.example.com"],
    ["notexample.com", "notexample.com.example.com"],
    ["www.example.org", "www.example.org.example.com"],
    [" www ", "www.example.com"],
    ["", "example.com"],
    [" ", "example.com"],
    ["com", "com.example.com"],
    ["l".repeat(63), `${"l".repeat(63)}.example.com`],
    ["1", "1.example.com"],
  ])("%j is %s", (input, name) => {
    expect(parseRecordName(input, zone)).toBe(name);
    expect(parseRecordName(name, zone)).toBe(name);
  });

  it.each([
    [".", "but is not inside example.com"],
    ["a..b", "empty label"],
    [".a", "empty label"],
    ["a..", "but is not inside example.com"],
    ["www.example.com..", "but is not inside example.com"],
    ["a.*", "whole first label"],
    ["a*", "whole first label"],
    ["**", "whole first label"],
    ["*.*", "whole first label"],
    ["-a", "inner"],
    ["a-", "inner"],
    ["a b", "characters that are not allowed in names"],
    ["a/b", "inner"],
    ["http://a", "inner"],
    ["a\\.b", "inner"],
    ["a\u0000b", "characters that are not allowed in names"],
    ["ü%41", "characters that are not allowed in names"],
    ["ü。a", "characters that are not allowed in names"],
    ["l".repeat(64), "longer than 63"],
    [`${"a".repeat(60)}.`.repeat(5).slice(0, -1), "longer than 253"],
    ["www.example.org.", "but is not inside example.com"],
    ["org.", "but is not inside example.com"],
  ])("%j is rejected", (input, why) => {
    const parse = (): string => parseRecordName(input, zone);
    expect(parse).toThrowError(
      expect.objectContaining({ kind: "dns.invalidName", pointer: "/body/name" }) as Error,
    );
    expect(parse).toThrowError(why);
  });

  it("is stable: parsing the result again does not change it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 80 }), (input) => {
        let name: string;
        try {
          name = parseRecordName(input, zone);
        } catch {
          return;
        }
        expect(name === zone || name.endsWith(`.${zone}`)).toBe(true);
        expect(name).toMatch(/^[a-z0-9_.*-]{1,253}$/);
        expect(parseRecordName(name, zone)).toBe(name);
      }),
    );
  });
});

it("detects names that look like another domain's", () => {
  expect(looksForeign("www.example.org", zone)).toBe(true);
  expect(looksForeign("example.co.uk", zone)).toBe(true);
  for (const name of ["www", "a.b", "@", "www.example.com", "www.example.com.", "_sip._tcp", "com"]) {
    expect(looksForeign(name, zone)).toBe(false);
  }
});
