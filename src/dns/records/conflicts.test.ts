import { describe, expect, it } from "vitest";
import { plans } from "../../control/zones/plans.ts";
import { refuseConflicts } from "./conflicts.ts";
import { parseRecord, type RecordFields, type RecordInput } from "./record.ts";

const zone = "example.com";
const record = (type: string, content: string, more: Partial<RecordInput> = {}): RecordFields =>
  parseRecord({ type, name: "www", content, ...more }, zone, plans.enterprise);
const a = record("A", "192.0.2.1");
const cname = record("CNAME", "other.example");
const proxiedCname = record("CNAME", "other.example", { proxied: true });
const flattened = record("CNAME", "other.example", { settings: { flatten_cname: true } });
const apexCname = record("CNAME", "other.example", { name: "@" });
const txt = record("TXT", "text");
const ns = record("NS", "ns.example");
const mx = record("MX", "10 mail.example");
const nullMx = record("MX", "0 .");
const ds = record("DS", `1 8 1 ${"ab".repeat(20)}`);

describe("a record and the others at its name", () => {
  const fine: [what: string, record: RecordFields, others: RecordFields[]][] = [
    ["nothing", a, []],
    ["another address", record("A", "192.0.2.2"), [a]],
    ["an address of the other family", record("AAAA", "::1"), [a]],
    ["text beside an address", txt, [a, mx]],
    ["the same host with another priority", record("MX", "20 mail.example"), [mx]],
    ["a DS beside a CNAME", ds, [cname]],
    ["a CNAME beside a DS", cname, [ds]],
    ["text beside a proxied CNAME", txt, [proxiedCname]],
    ["a proxied CNAME beside text and mail", proxiedCname, [txt, mx]],
    ["a flattened CNAME beside text", flattened, [txt]],
    ["mail beside a CNAME at the apex", record("MX", "10 mail.example", { name: "@" }), [apexCname]],
    ["a CNAME at the apex beside name servers", apexCname, [record("NS", "ns.example", { name: "@" })]],
    ["name servers beside a CNAME at the apex", record("NS", "ns.example", { name: "@" }), [apexCname]],
    ["one null MX", nullMx, [txt]],
  ];
  it.each(fine)("can be %s", (_, each, others) => {
    expect(() => refuseConflicts(each, others, zone)).not.toThrow();
  });

  const barred: [what: string, kind: string, record: RecordFields, others: RecordFields[]][] = [
    ["an address, for a CNAME", "dns.addressConflict", cname, [a]],
    ["an address, for a proxied CNAME", "dns.addressConflict", proxiedCname, [record("AAAA", "::1")]],
    ["another CNAME", "dns.addressConflict", record("CNAME", "third.example"), [cname]],
    ["a CNAME, for an address", "dns.cnameConflict", a, [cname]],
    ["a proxied CNAME, for an address", "dns.cnameConflict", a, [proxiedCname]],
    ["a CNAME, for text", "dns.cnameConflict", txt, [cname]],
    ["a CNAME, for name servers", "dns.cnameConflict", ns, [proxiedCname]],
    ["text, for a CNAME", "dns.otherConflict", cname, [txt]],
    ["mail, for a CNAME", "dns.otherConflict", cname, [ds, mx]],
    ["name servers, for a CNAME", "dns.delegationConflict", cname, [ns]],
    ["name servers, for a flattened CNAME", "dns.delegationConflict", flattened, [ns]],
    ["mail, for the null MX", "dns.nullMx", nullMx, [mx]],
    ["the null MX, for mail", "dns.nullMx", mx, [nullMx]],
    ["the null MX, for the null MX of another priority", "dns.nullMx", record("MX", "5 ."), [nullMx]],
  ];
  it.each(barred)("cannot be %s (%s)", (_, kind, each, others) => {
    expect(() => refuseConflicts(each, others, zone)).toThrowError(
      expect.objectContaining({ kind }) as Error,
    );
  });
});

it.each([
  ["itself", a, a],
  ["itself with another comment", record("A", "192.0.2.1", { comment: "x", ttl: 300 }), a],
  ["itself in other letters", record("MX", "10 MAIL.example."), mx],
])("cannot be %s, with the current code and the one that older clients know", (_, each, other) => {
  const errors = [{ kind: "dns.identical" }, { kind: "dns.exists" }];
  expect(() => refuseConflicts(each, [other], zone)).toThrowError(
    expect.objectContaining({ errors: errors.map((each) => expect.objectContaining(each)) }) as Error,
  );
});

it("allows 8192 characters of text at one name", () => {
  const texts = Array.from({ length: 8 }, (_, i) => record("TXT", `${i}${"x".repeat(999)}`));
  expect(() => refuseConflicts(texts[0]!, texts.slice(1), zone)).not.toThrow();
  const ninth = record("TXT", "9".repeat(1000));
  expect(() => refuseConflicts(ninth, texts, zone)).toThrowError(
    expect.objectContaining({ kind: "dns.textTooLong", pointer: "/body/content" }) as Error,
  );
});

it("allows a thousand records at one name", () => {
  const many = Array.from({ length: 1000 }, (_, i) => record("A", `10.0.${i >> 8}.${i & 255}`));
  expect(() => refuseConflicts(many[0]!, many.slice(1), zone)).not.toThrow();
  expect(() => refuseConflicts(a, many, zone)).toThrowError(
    expect.objectContaining({ kind: "dns.nameFull" }) as Error,
  );
});
