import { BlockList, isIPv6 } from "node:net";
import { fc } from "../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import { AddressSet, isNetwork } from "./address-set.ts";

// Few bits, so that networks overlap often.
const v4 = fc.tuple(fc.integer({ min: 0, max: 63 }), fc.integer({ min: 24, max: 32 }));
const network = fc.oneof(
  v4.map(([last, bits]) => `192.0.2.${last}/${bits}`),
  v4.map(([last]) => `192.0.2.${last}`),
  v4.map(([last, bits]) => `::ffff:192.0.2.${last}/${bits + 96}`),
  v4.map(([last, bits]) => `2001:db8::${last.toString(16)}/${bits + 96}`),
  fc.constantFrom("0.0.0.0/0", "::/0", "::ffff:0:0/96"),
);
const networks = fc.array(network, { maxLength: 4 });
const addresses = Array.from({ length: 64 }, (_, i) => [`192.0.2.${i}`, `2001:db8::${i.toString(16)}`])
  .flat()
  .concat("198.51.100.1", "::1");

function listOf(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [address = "", bits] = text.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    list.addSubnet(address, Number(bits ?? (family === "ipv6" ? 128 : 32)), family);
  }
  return list;
}

it("contains the addresses that are included and not excluded", () => {
  fc.assert(
    fc.property(networks, networks, (included, excluded) => {
      const set = new AddressSet(included, excluded);
      const [within, without] = [listOf(included), listOf(excluded)];
      for (const address of addresses) {
        const family = isIPv6(address) ? "ipv6" : "ipv4";
        const expected =
          (included.length === 0 || within.check(address, family)) && !without.check(address, family);
        expect(set.has(address), address).toBe(expected);
      }
    }),
  );
});

it("includes another set only if it contains all of its addresses", () => {
  fc.assert(
    fc.property(networks, networks, networks, networks, (in1, out1, in2, out2) => {
      const [one, other] = [new AddressSet(in1, out1), new AddressSet(in2, out2)];
      if (one.includes(other))
        for (const address of addresses) expect(one.has(address) || !other.has(address)).toBe(true);
      expect(one.includes(one)).toBe(true);
      expect(new AddressSet([], []).includes(one)).toBe(true);
      expect(one.includes(new AddressSet(in1, [...out1, ...out2]))).toBe(true);
    }),
  );
});

it("parses addresses and networks, and rejects other text", () => {
  for (const text of ["192.0.2.1", "192.0.2.0/24", "::/0", "2001:db8::1/128", "::ffff:192.0.2.1"])
    expect(isNetwork(text), text).toBe(true);
  for (const text of [
    "",
    "192.0.2",
    "192.0.2.1/33",
    "::/129",
    "fe80::1%eth0",
    "1.2.3.4/",
    "1.2.3.4/8/8",
    "a",
  ])
    expect(isNetwork(text), text).toBe(false);
  expect(new AddressSet(["fe80::/10"], []).has("fe80::1%eth0")).toBe(true);
  expect(new AddressSet([], []).has("nothing")).toBe(false);
});
