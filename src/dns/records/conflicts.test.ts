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

  const barred: [what: string, code: number, record: RecordFields, others: RecordFields[]][] = [
    ["an address, for a CNAME", 81053, cname, [a]],
    ["an address, for a proxied CNAME", 81053, proxiedCname, [record("AAAA", "::1")]],
    ["another CNAME", 81053, record("CNAME", "third.example"), [cname]],
    ["a CNAME, for an address", 81054, a, [cname]],
    ["a proxied CNAME, for an address", 81054, a, [proxiedCname]],
    ["a CNAME, for text", 81054, txt, [cname]],
    ["a CNAME, for name servers", 81054, ns, [proxiedCname]],
    ["text, for a CNAME", 81055, cname, [txt]],
    ["mail, for a CNAME", 81055, cname, [ds, mx]],
    ["name servers, for a CNAME", 81056, cname, [ns]],
    ["name servers, for a flattened CNAME", 81056, flattened, [ns]],
    ["mail, for the null MX", 9210, nullMx, [mx]],
    ["the null MX, for mail", 9210, mx, [nullMx]],
    ["the null MX, for the null MX of another priority", 9210, record("MX", "5 ."), [nullMx]],
  ];
  it.each(barred)("cannot be %s (%i)", (_, code, each, others) => {
    expect(() => refuseConflicts(each, others, zone)).toThrowError(
      expect.objectContaining({ code, status: 400 }) as Error,
    );
  });
});

it.each([
  ["itself", a, a],
  ["itself with another comment", record("A", "192.0.2.1", { comment: "x", ttl: 300 }), a],
  ["itself in other letters", record("MX", "10 MAIL.example."), mx],
])("cannot be %s, with the current code and the one that older clients know", (_, each, other) => {
  const codes = [{ code: 81058 }, { code: 81057 }];
  expect(() => refuseConflicts(each, [other], zone)).toThrowError(
    expect.objectContaining({ errors: codes.map((code) => expect.objectContaining(code)) }) as Error,
  );
});

it("allows 8192 characters of text at one name", () => {
  const texts = Array.from({ length: 8 }, (_, i) => record("TXT", `${i}${"x".repeat(999)}`));
  expect(() => refuseConflicts(texts[0]!, texts.slice(1), zone)).not.toThrow();
  const ninth = record("TXT", "9".repeat(1000));
  expect(() => refuseConflicts(ninth, texts, zone)).toThrowError(
    expect.objectContaining({ code: 9212, pointer: "/body/content" }) as Error,
  );
});

it("allows a thousand records at one name", () => {
  const many = Array.from({ length: 1000 }, (_, i) => record("A", `10.0.${i >> 8}.${i & 255}`));
  expect(() => refuseConflicts(many[0]!, many.slice(1), zone)).not.toThrow();
  expect(() => refuseConflicts(a, many, zone)).toThrowError(
    expect.objectContaining({ code: 81046 }) as Error,
  );
});
