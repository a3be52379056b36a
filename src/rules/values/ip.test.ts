import { fc } from "../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import { IpSet, type IpRange } from "./ip-set.ts";
import { formatIp, lastOf, networkOf, parseIp } from "./ip.ts";
import type { IpValue } from "./types.ts";

const v4 = fc.oneof(
  fc.integer({ min: 0, max: 0xffff_ffff }),
  fc.constantFrom(0, 0xffff_ffff, 0x7fff_ffff, 0x8000_0000),
);
const v6 = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map((bytes) => Buffer.from(bytes).toString("latin1"));
const near = fc.integer({ min: 0, max: 300 }).map((offset) => 0x0a00_0000 + offset);

it("parses the addresses that it formats", () => {
  fc.assert(
    fc.property(fc.oneof(v4, v6), (ip) => {
      expect(parseIp(formatIp(ip))).toBe(ip);
    }),
  );
  expect(formatIp(parseIp("2001:DB8:0:0:1:0:0:1")!)).toBe("2001:db8::1:0:0:1");
  expect(formatIp(parseIp("::ffff:1.2.3.4")!)).toBe("::ffff:1.2.3.4");
  expect(formatIp(parseIp("::")!)).toBe("::");
  expect(formatIp(parseIp("1:0:2:3:4:5:6:7")!)).toBe("1:0:2:3:4:5:6:7");
});

it.each([
  "",
  "1.2.3",
  "1.2.3.4.5",
  "1.2.3.256",
  "01.2.3.4",
  "1.2.3.4 ",
  "::g",
  "fe80::1%eth0",
  ":::",
  "1:2:3:4:5:6:7:8:9",
])("refuses %j as an address", (text) => {
  expect(parseIp(text)).toBeUndefined();
});

it("finds exactly the addresses of its ranges", () => {
  const rangeOf = (ip: fc.Arbitrary<IpValue>): fc.Arbitrary<IpRange> =>
    fc.tuple(ip, ip).map(([a, b]) => (a < b ? { first: a, last: b } : { first: b, last: a }));
  const ranges = fc.array(fc.oneof(rangeOf(v4), rangeOf(v6), rangeOf(near)), { maxLength: 12 });
  fc.assert(
    fc.property(ranges, fc.array(fc.oneof(v4, v6, near)), (given, probes) => {
      const set = new IpSet(given);
      const edges = given.flatMap(({ first, last }) => [first, last]);
      const beside = edges.flatMap((ip) =>
        typeof ip === "number" ? [Math.max(0, ip - 1), Math.min(0xffff_ffff, ip + 1)] : [],
      );
      for (const ip of [...probes, ...edges, ...beside]) {
        const expected = given.some(
          ({ first, last }) => typeof first === typeof ip && first <= ip && ip <= last,
        );
        expect(set.has(ip), formatIp(ip)).toBe(expected);
      }
    }),
  );
});

it("finds the first and the last address of a network", () => {
  fc.assert(
    fc.property(v4, fc.integer({ min: 0, max: 32 }), (ip, bits) => {
      const size = 2 ** (32 - bits);
      const first = Math.floor(ip / size) * size;
      expect(networkOf(ip, bits)).toBe(first);
      expect(lastOf(first, bits)).toBe(first + size - 1);
    }),
  );
  expect(formatIp(networkOf(parseIp("2001:0:130f::9c0:876a:130b")!, 24))).toBe("2001::");
  expect(formatIp(lastOf(parseIp("2001:db8::")!, 33))).toBe("2001:db8:7fff:ffff:ffff:ffff:ffff:ffff");
});
