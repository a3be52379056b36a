import { expect, it } from "vitest";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLocalAuthority } from "./certificates/local-authority.ts";
import { SecureContexts, type ServedCertificate } from "./secure-contexts.ts";

const folder = mkdtempSync(join(tmpdir(), "selvedge-contexts-"));
const authority = openLocalAuthority(folder);
rmSync(folder, { recursive: true });
const inADay = Date.now() + 86_400_000;
const of = (hosts: string[], rank = 1, expiresOn = inADay): ServedCertificate => ({
  ...authority.issue(hosts),
  hosts,
  rank,
  expiresOn,
});
const contexts = (): SecureContexts => new SecureContexts(authority, (host) => host.endsWith(".example"));

it("an exact name is preferred to a wildcard, which matches one label", () => {
  const made = contexts();
  const [own, wild] = [of(["www.a.example"]), of(["*.a.example", "a.example"], 9)];
  made.set("zone", [own, wild]);
  expect(made.find("www.a.example")).toBe(own);
  expect(made.find("other.a.example")).toBe(wild);
  expect(made.find("a.example")).toBe(wild);
  expect(made.find("x.other.a.example")).toBeUndefined();
  expect(made.find("example")).toBeUndefined();
});

it("the higher rank is preferred, then the later expiry; expired certificates are skipped", () => {
  const made = contexts();
  const [expired, low, high, longer] = [
    of(["a.example"], 9, Date.now() - 1),
    of(["a.example"], 1),
    of(["a.example"], 2),
    of(["a.example"], 2, inADay + 1),
  ];
  made.set("one", [expired, low]);
  expect(made.find("a.example")).toBe(low);
  made.set("two", [high, longer]);
  expect(made.find("a.example")).toBe(longer);
  made.set("two", [high]);
  expect(made.find("a.example")).toBe(high);
  made.set("two", []);
  expect(made.find("a.example")).toBe(low);
  made.set("one", []);
  expect(made.find("a.example")).toBeUndefined();
});

it("a context is created once for each certificate, and once a day for each host without one", () => {
  const made = contexts();
  made.set("zone", [of(["*.a.example"])]);
  expect(made.contextFor("X.a.example.")).toBe(made.contextFor("y.a.example"));
  expect(made.contextFor("b.example")).toBe(made.contextFor("b.example"));
  expect(made.contextFor("b.example")).not.toBe(made.contextFor("c.example"));
  // Requests cannot cause certificates for names outside the zones.
  expect(made.contextFor("one.elsewhere.test")).toBe(made.contextFor("two.elsewhere.test"));
});
