import { expect, it } from "vitest";
import { AddressPolicy } from "../origin/address-policy.ts";
import { EdgeSnapshot, EdgeZone } from "./snapshot.ts";

const entry = (content: string) => ({ isProxied: true, targets: [{ type: "A" as const, content }] });

it("finds the longest suffix that is a zone", () => {
  const snapshot = new EdgeSnapshot();
  for (const name of ["example.com", "sub.example.com"]) snapshot.add(new EdgeZone(name, name, false));
  expect(snapshot.findZone("a.b.sub.example.com")?.name).toBe("sub.example.com");
  expect(snapshot.findZone("xsub.example.com")?.name).toBe("example.com");
  expect(snapshot.findZone("example.org")).toBeUndefined();
  snapshot.remove("sub.example.com");
  expect(snapshot.findZone("a.sub.example.com")?.name).toBe("example.com");
});

it("applies a wildcard only at the closest existing name", () => {
  const zone = new EdgeZone("z", "w.example", false);
  zone.setHost("*.w.example", entry("wild"));
  zone.setHost("txt.w.example", { isProxied: false, targets: [] });
  zone.setHost("deep.ent.w.example", entry("deep"));
  const content = (host: string): string | undefined => zone.resolve(host)?.targets[0]?.content;
  expect(content("a.w.example")).toBe("wild");
  expect(content("a.b.w.example")).toBe("wild");
  expect(content("x.txt.w.example")).toBeUndefined();
  expect(content("ent.w.example")).toBeUndefined();
  expect(content("x.ent.w.example")).toBeUndefined();
  expect(content("w.example")).toBeUndefined();
  zone.setHost("deep.ent.w.example", undefined);
  expect(content("x.ent.w.example")).toBe("wild");
});

it("recognizes addresses that are not public", () => {
  const policy = new AddressPolicy("origins");
  const check = (address: string, who: "origin" | "script") => policy.check(address, 80, who);
  const special = [
    "10.0.0.1",
    "172.31.0.1",
    "192.168.1.1",
    "127.0.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fc00::1",
    "fd12::1",
    "ff02::1",
    "::ffff:10.0.0.1",
    "::ffff:a00:1",
    "::10.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2002:a00:1::",
    "2001:db8::1",
  ];
  for (const address of special) {
    expect([address, check(address, "script")]).toEqual([address, "private"]);
    expect([address, check(address, "origin")]).toEqual([address, "allowed"]);
  }
  for (const address of ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
    expect(check(address, "script")).toBe("allowed");
  expect(check("not-an-address", "origin")).toBe("invalid");
});
