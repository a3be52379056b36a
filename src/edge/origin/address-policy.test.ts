import { networkInterfaces } from "node:os";
import { describe, expect, it } from "vitest";
import { AddressPolicy, type Verdict } from "./address-policy.ts";

/** All spellings of addresses that reach 127.0.0.1 or the loopback interface. */
const loopback = [
  "127.0.0.1",
  "127.255.255.254",
  "::1",
  "0:0:0:0:0:0:0:1",
  "0000::0001",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::FFFF:7F00:0001",
  "0:0:0:0:0:ffff:127.0.0.1",
  "::127.0.0.1",
  "::7f00:1",
  "::ffff:0:127.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b::127.0.0.1",
  "2002:7f00:1::",
  "2002:7f00:0001:0:0:0:0:1",
  "0.0.0.0",
  "::",
  "::ffff:0.0.0.0",
  "64:ff9b::",
];

const table: [address: string, expected: Verdict][] = [
  ["1.1.1.1", "allowed"],
  ["9.255.255.255", "allowed"],
  ["11.0.0.0", "allowed"],
  ["100.63.255.255", "allowed"],
  ["100.128.0.0", "allowed"],
  ["172.15.255.255", "allowed"],
  ["172.32.0.0", "allowed"],
  ["192.167.255.255", "allowed"],
  ["223.255.255.255", "allowed"],
  ["2606:4700::1111", "allowed"],
  ["::ffff:1.1.1.1", "allowed"],
  ["64:ff9b::101:101", "allowed"],
  ["2002:101:101::", "allowed"],
  ["0.1.2.3", "private"],
  ["10.0.0.1", "private"],
  ["100.64.0.1", "private"],
  ["169.254.169.254", "private"],
  ["172.16.0.1", "private"],
  ["172.31.255.255", "private"],
  ["192.0.2.1", "private"],
  ["192.168.1.1", "private"],
  ["198.19.0.1", "private"],
  ["203.0.113.9", "private"],
  ["224.0.0.1", "private"],
  ["255.255.255.255", "private"],
  ["::ffff:10.0.0.1", "private"],
  ["::ffff:a9fe:a9fe", "private"],
  ["::ffff:0:a9fe:a9fe", "private"],
  ["64:ff9b::a9fe:a9fe", "private"],
  ["64:ff9b:1::1", "private"],
  ["2002:a00:1::", "private"],
  ["2002:c0a8:101:1::1", "private"],
  ["2001:db8::1", "private"],
  ["2001:0:1::", "private"],
  ["fc00::1", "private"],
  ["fd00:ec2::254", "private"],
  ["fe80::1", "private"],
  ["fec0::1", "private"],
  ["ff02::1", "private"],
  ["fe80::1%lo", "invalid"],
  ["::1%lo", "invalid"],
  ["", "invalid"],
  ["localhost", "invalid"],
  ["127.1", "invalid"],
  ["0177.0.0.1", "invalid"],
  ["2130706433", "invalid"],
  ["[::1]", "invalid"],
  ["1.1.1.1 ", "invalid"],
];

describe("address policy", () => {
  it.each(table)("%s is %s when private networks are denied", (address, expected) => {
    expect(new AddressPolicy("deny").check(address, 80, "origin")).toBe(expected);
    expect(new AddressPolicy("origins").check(address, 80, "script")).toBe(expected);
    const open = expected === "private" ? "allowed" : expected;
    expect(new AddressPolicy("origins").check(address, 80, "origin")).toBe(open);
    expect(new AddressPolicy("all").check(address, 80, "script")).toBe(open);
  });

  it.each(loopback)("%s is loopback, and this machine", (address) => {
    const denying = new AddressPolicy("deny");
    expect(denying.check(address, 80, "origin")).toBe("private");
    const open = new AddressPolicy("all");
    open.forbidListener(8787);
    for (const who of ["origin", "script", "socket"] as const) {
      expect(open.check(address, 8787, who)).toBe("own_listener");
      expect(open.check(address, 8788, who)).toBe("allowed");
    }
  });

  it("forbids sockets to the edge's own listeners, but allows requests", () => {
    const policy = new AddressPolicy("all");
    policy.forbidSockets(8080);
    for (const address of ["127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0"]) {
      expect(policy.check(address, 8080, "socket")).toBe("own_listener");
      expect(policy.check(address, 8080, "script")).toBe("allowed");
      expect(policy.check(address, 8081, "socket")).toBe("allowed");
    }
  });

  it("recognizes the addresses of this machine's interfaces, in any spelling", () => {
    const policy = new AddressPolicy("all");
    policy.forbidListener(8787);
    for (const { address, family } of Object.values(networkInterfaces()).flatMap((list) => list ?? [])) {
      const spellings = family === "IPv4" ? [address, `::ffff:${address}`] : [address, address.toUpperCase()];
      for (const each of spellings) expect(policy.check(each, 8787, "origin"), each).toBe("own_listener");
    }
    expect(policy.check("1.1.1.1", 8787, "origin")).toBe("allowed");
  });
});
