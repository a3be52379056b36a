import { describe, expect, it } from "vitest";
import { plans } from "../../control/zones/plans.ts";
import { isProxiable, parseRecord, type RecordFields, type RecordInput } from "./record.ts";

const base: RecordInput = { type: "A", name: "www", content: "192.0.2.1" };
const parse = (more: Partial<RecordInput> = {}, plan = plans.enterprise): RecordFields =>
  parseRecord({ ...base, ...more }, "example.com", plan);
const refuses = (
  more: Partial<RecordInput>,
  kind: string,
  pointer: string,
  plan = plans.enterprise,
): void => {
  expect(() => parse(more, plan)).toThrowError(
    expect.objectContaining({ kind: `dns.${kind}`, pointer }) as Error,
  );
};

it("names all wrong fields, and not the first one only", () => {
  const errors = [{ pointer: "/body/name" }, { pointer: "/body/content" }, { pointer: "/body/ttl" }];
  const wrong = { name: "a b", content: "x", ttl: 5 };
  expect(() => parse(wrong)).toThrowError(
    expect.objectContaining({
      errors: errors.map((each) => expect.objectContaining(each) as Error),
    }) as Error,
  );
});

it("has every field, with its default", () => {
  expect(parse()).toEqual({
    type: "A",
    name: "www.example.com",
    content: "192.0.2.1",
    data: null,
    priority: null,
    ttl: 1,
    proxied: false,
    settings: {},
    comment: null,
    tags: [],
  });
});

it("accepts the type in either case, and rejects unknown types", () => {
  expect(parse({ type: "aaaa", content: "::1" }).type).toBe("AAAA");
  refuses({ type: "SOA" }, "invalidType", "/body/type");
  refuses({ type: "SPF" }, "invalidType", "/body/type");
  refuses({ type: "" }, "invalidType", "/body/type");
});

describe("ttl", () => {
  it.each([1, 60, 300, 86_400])("%i is accepted on every plan", (ttl) => {
    expect(parse({ ttl }, plans.free).ttl).toBe(ttl);
  });
  it.each([0, 2, 29, 59, 86_401, -1, 60.5, Number.NaN])("%d is rejected", (ttl) => {
    refuses({ ttl }, "invalidTtl", "/body/ttl", plans.free);
  });
  it("may be 30 on enterprise", () => {
    expect(parse({ ttl: 30 }).ttl).toBe(30);
    refuses({ ttl: 29 }, "invalidTtl", "/body/ttl");
  });
  it("is automatic while the record is proxied", () => {
    expect(parse({ ttl: 300, proxied: true }).ttl).toBe(1);
    refuses({ ttl: 5, proxied: true }, "invalidTtl", "/body/ttl");
  });
});

describe("proxied", () => {
  it("is allowed for addresses and CNAMEs", () => {
    for (const more of [{}, { type: "AAAA", content: "::1" }, { type: "CNAME", content: "a.example" }]) {
      expect(parse({ ...more, proxied: true }).proxied).toBe(true);
    }
    refuses({ type: "TXT", content: "text", proxied: true }, "notProxiable", "/body/proxied");
    expect(parse({ type: "TXT", content: "text", proxied: false }).proxied).toBe(false);
  });
  it.each([
    "selector1-example-com._domainkey.tenant.onmicrosoft.com",
    "abc.dkim.amazonses.com",
    "_x.acm-validations.aws",
    "example.com.0123.dcv.cloudflare.com",
  ])("is not allowed for the verification target %s", (content) => {
    expect(isProxiable({ type: "CNAME", content })).toBe(false);
    refuses({ type: "CNAME", content, proxied: true }, "notProxiable", "/body/proxied");
  });
});

describe("settings", () => {
  it("are kept on records where they apply", () => {
    expect(parse({ settings: { ipv4_only: true } }).settings).toEqual({ ipv4_only: true });
    expect(parse({ type: "CNAME", content: "a.example" }).settings).toEqual({ flatten_cname: false });
    expect(
      parse({ type: "CNAME", content: "a.example", settings: { flatten_cname: true } }).settings,
    ).toEqual({ flatten_cname: true });
    expect(
      parse({ type: "TXT", content: "x", settings: { ipv4_only: false, flatten_cname: false } }).settings,
    ).toEqual({});
  });
  it("are rejected on records where they do not apply", () => {
    refuses({ settings: { flatten_cname: true } }, "invalidSetting", "/body/settings/flatten_cname");
    refuses({ settings: { ipv4_only: true, ipv6_only: true } }, "invalidSetting", "/body/settings/ipv6_only");
    refuses(
      { type: "TXT", content: "x", settings: { ipv6_only: true } },
      "invalidSetting",
      "/body/settings/ipv6_only",
    );
  });
});

describe("comment and tags", () => {
  it("are limited by the plan", () => {
    expect(parse({ comment: "x".repeat(100) }, plans.free).comment).toHaveLength(100);
    refuses({ comment: "x".repeat(101) }, "invalidComment", "/body/comment", plans.free);
    expect(parse({ comment: "x".repeat(500) }).comment).toHaveLength(500);
    refuses({ comment: "x".repeat(501) }, "invalidComment", "/body/comment");
    refuses({ tags: ["a"] }, "invalidTag", "/body/tags", plans.free);
    expect(parse({ tags: Array.from({ length: 20 }, (_, i) => `t${i}`) }).tags).toHaveLength(20);
    refuses({ tags: Array.from({ length: 21 }, (_, i) => `t${i}`) }, "invalidTag", "/body/tags");
  });
  it("are normalized", () => {
    expect(parse({ comment: "" }).comment).toBeNull();
    expect(parse({ comment: " a; b " }).comment).toBe(" a; b ");
    expect(parse({ tags: ["Team:Web", "old", "a:b:c", "team:Web"] }).tags).toEqual([
      "a:b:c",
      "old",
      "team:Web",
    ]);
  });
  it("must be on one line", () => {
    for (const comment of ["a\nb", "a\rb", "a\u0000b", "\u001b", "\ud800"])
      refuses({ comment }, "invalidComment", "/body/comment");
    for (const tag of [
      "",
      ":x",
      "a b",
      "a:b\nc",
      "a:b,c",
      `${"n".repeat(33)}:v`,
      `n:${"v".repeat(101)}`,
      "cf-proxied:true",
      "ü",
    ]) {
      refuses({ tags: [tag] }, "invalidTag", "/body/tags");
    }
  });
});

describe("a name that the type cannot have", () => {
  it("is rejected for SRV, DS and CNAME", () => {
    const srv = { type: "SRV", data: { priority: 1, weight: 1, port: 1, target: "a.example" } };
    expect(parse({ ...srv, name: "_sip._tcp" }).name).toBe("_sip._tcp.example.com");
    expect(parse({ ...srv, name: "*._tcp" }).name).toBe("*._tcp.example.com");
    refuses({ ...srv, name: "sip" }, "invalidName", "/body/name");
    refuses({ ...srv, name: "_sip" }, "invalidName", "/body/name");
    refuses({ type: "DS", name: "@", content: `1 8 1 ${"ab".repeat(20)}` }, "invalidName", "/body/name");
    refuses({ type: "CNAME", content: "www.example.com." }, "badCname", "/body/content");
    expect(parse({ type: "MX", name: "@", content: "example.com", priority: 1 }).content).toBe("example.com");
  });
});
