import { describe, expect, it } from "vitest";
import { plans } from "../../control/zones/plans.ts";
import { applyBatch, emptyBatch, involved, merge, type RecordBatch } from "./batch.ts";
import { Draft } from "./draft.ts";
import { parseRecord, type DnsRecord, type RecordInput } from "./record.ts";

const zone = { id: "0".repeat(32), name: "example.com" };
const makeId = (): (() => string) => {
  let last = 100;
  return () => String(++last);
};
const stored = (id: string, input: RecordInput): DnsRecord => ({
  ...parseRecord(input, zone.name, plans.enterprise),
  id,
  zoneId: zone.id,
  createdOn: 1,
  modifiedOn: 1,
  commentModifiedOn: input.comment === undefined ? null : 1,
  tagsModifiedOn: input.tags === undefined ? null : 1,
});
const a = (id: string, name: string, content = "192.0.2.1"): DnsRecord =>
  stored(id, { type: "A", name, content });
const draftOf = (...records: DnsRecord[]): Draft => new Draft(zone, records, makeId(), 2);
const apply = (draft: Draft, batch: Partial<RecordBatch>) =>
  applyBatch(draft, { ...emptyBatch, ...batch }, zone.name, plans.enterprise);

describe("a batch", () => {
  it("deletes, patches, puts and posts, in that order", () => {
    const draft = draftOf(a("1", "a"), a("2", "b"), a("3", "c", "192.0.2.3"));
    const result = apply(draft, {
      posts: [{ type: "CNAME", name: "a", content: "other.example" }],
      puts: [{ id: "3", type: "AAAA", name: "b", content: "::1" }],
      patches: [{ id: "2", name: "c", ttl: 60 }],
      deletes: [{ id: "1" }],
    });
    expect(result.deletes).toEqual([a("1", "a")]);
    expect(result.patches).toMatchObject([
      { id: "2", name: "c.example.com", ttl: 60, modifiedOn: 2, createdOn: 1 },
    ]);
    expect(result.puts).toMatchObject([{ id: "3", name: "b.example.com", type: "AAAA" }]);
    expect(result.posts).toMatchObject([{ id: "101", name: "a.example.com", type: "CNAME" }]);
    expect(draft.deletedIds).toEqual(["1"]);
    expect(draft.updated.map(({ id }) => id)).toEqual(["2", "3"]);
    expect(draft.inserted.map(({ id }) => id)).toEqual(["101"]);
    expect([...draft.touchedNames].sort()).toEqual(["a.example.com", "b.example.com", "c.example.com"]);
  });

  it("shows each change to the next operation", () => {
    const draft = draftOf(a("1", "a"));
    const result = apply(draft, {
      patches: [
        { id: "1", comment: "first" },
        { id: "1", ttl: 120 },
      ],
    });
    expect(result.patches[1]).toMatchObject({ comment: "first", ttl: 120 });
    expect(draft.updated).toHaveLength(1);
  });

  const one = { type: "A", name: "x", content: "192.0.2.9" };
  it.each<[string, Partial<RecordBatch>, string, string]>([
    ["an unknown id", { deletes: [{ id: "9" }] }, "dns.notFound", "/body/deletes/0"],
    [
      "an id that it deletes itself",
      { deletes: [{ id: "1" }], patches: [{ id: "1", ttl: 60 }] },
      "dns.notFound",
      "/body/patches/0",
    ],
    [
      "a wrong third post",
      { posts: [one, { ...one, name: "y" }, { ...one, content: "none" }] },
      "dns.badContent",
      "/body/posts/2/content",
    ],
    ["a wrong name", { puts: [{ ...one, id: "1", name: "a..b" }] }, "dns.invalidName", "/body/puts/0/name"],
    [
      "a wrong member",
      { posts: [{ type: "CAA", name: "x", data: { flags: 0 } }] },
      "dns.invalidData",
      "/body/posts/0/data/tag",
    ],
  ])("is rejected as a whole for %s", (_, batch, kind, pointer) => {
    expect(() => apply(draftOf(a("1", "a")), batch)).toThrowError(
      expect.objectContaining({ kind, pointer }) as Error,
    );
  });

  it("is rejected as a whole for two equal posts", () => {
    const pointer = "/body/posts/1";
    expect(() => apply(draftOf(a("1", "a")), { posts: [one, one] })).toThrowError(
      expect.objectContaining({
        errors: ["dns.identical", "dns.exists"].map((kind) => expect.objectContaining({ kind, pointer })),
      }) as Error,
    );
  });

  it("names the operation in the message", () => {
    expect(() => apply(draftOf(), { posts: [one, { ...one, content: "none" }] })).toThrowError(
      'posts[1]: Content for A record must be a valid IPv4 address but received "none"',
    );
  });

  it("needs the records of every name that it affects", () => {
    expect(
      involved(
        {
          deletes: [{ id: "1" }],
          patches: [{ id: "2", name: "new" }, { id: "3" }],
          puts: [{ ...one, id: "2" }],
          posts: [one, { ...one, name: "a..b" }],
        },
        zone.name,
      ),
    ).toEqual({ ids: ["1", "2", "3"], names: ["new.example.com", "x.example.com"] });
  });
});

describe("an update", () => {
  it("without changes keeps the record's times", () => {
    const draft = draftOf(a("1", "a"));
    expect(
      apply(draft, { patches: [{ id: "1", ttl: 1, content: "192.0.2.1" }] }).patches[0]!.modifiedOn,
    ).toBe(1);
    expect(draft.touchedNames.size).toBe(0);
  });

  it("dates comment and tags separately, and removes the date with them", () => {
    const current = stored("1", { type: "A", name: "a", content: "192.0.2.1", comment: "x", tags: ["t"] });
    const update = (patch: Partial<RecordInput>): DnsRecord =>
      apply(draftOf(current), { patches: [{ id: "1", ...patch }] }).patches[0]!;
    expect(update({ ttl: 60 })).toMatchObject({ modifiedOn: 2, commentModifiedOn: 1, tagsModifiedOn: 1 });
    expect(update({ comment: "y" })).toMatchObject({ commentModifiedOn: 2, tagsModifiedOn: 1 });
    expect(update({ comment: null })).toMatchObject({ comment: null, commentModifiedOn: null });
    expect(update({ tags: [] })).toMatchObject({ tagsModifiedOn: null });
    expect(update({ tags: ["t", "u"] })).toMatchObject({ tagsModifiedOn: 2 });
  });
});

describe("a patch", () => {
  const parsed = (current: RecordInput, patch: Partial<RecordInput>) =>
    parseRecord(merge(stored("1", current), patch), zone.name, plans.enterprise);
  const mx = { type: "MX", name: "@", content: "mail.example", priority: 10 };
  const srv = {
    type: "SRV",
    name: "_a._tcp",
    data: { priority: 1, weight: 2, port: 3, target: "t.example" },
  };
  const uri = { type: "URI", name: "u", priority: 5, data: { weight: 1, target: "https://a.example/" } };

  it("keeps the fields that it omits", () => {
    expect(parsed(mx, { ttl: 60 })).toMatchObject({ content: "mail.example", priority: 10, ttl: 60 });
    expect(parsed(srv, { ttl: 60 })).toMatchObject({ content: "2 3 t.example", priority: 1 });
    expect(parsed(uri, { comment: "x" })).toMatchObject({ content: '1 "https://a.example/"', priority: 5 });
  });

  it("changes the priority alone, in both places", () => {
    expect(parsed(mx, { priority: 20 })).toMatchObject({ content: "mail.example", priority: 20 });
    expect(parsed(srv, { priority: 9 })).toMatchObject({ priority: 9, data: { priority: 9, port: 3 } });
    expect(parsed(uri, { priority: 7 })).toMatchObject({ priority: 7, data: { weight: 1 } });
  });

  it("changes the value and keeps the priority", () => {
    expect(parsed(mx, { content: "new.example" })).toMatchObject({ content: "new.example", priority: 10 });
    expect(parsed(mx, { content: "5 new.example" })).toMatchObject({ content: "new.example", priority: 5 });
    expect(parsed(srv, { content: "7 8 new.example" })).toMatchObject({
      priority: 1,
      data: { priority: 1, port: 8 },
    });
    expect(parsed(srv, { content: "6 7 8 new.example" })).toMatchObject({
      priority: 6,
      data: { priority: 6 },
    });
    expect(parsed(uri, { data: { weight: 2, target: "https://b.example/" } })).toMatchObject({ priority: 5 });
    expect(parsed(srv, { data: { weight: 0, port: 0, target: "." } })).toMatchObject({
      priority: 1,
      content: "0 0 .",
    });
  });

  it("changes the type only with a new value", () => {
    expect(parsed(mx, { type: "TXT", content: "text" })).toMatchObject({ type: "TXT", priority: null });
    expect(() => parsed(mx, { type: "A" })).toThrowError(
      expect.objectContaining({ kind: "dns.badContent" }) as Error,
    );
  });

  it("adds to the settings", () => {
    const cname = { type: "CNAME", name: "c", content: "t.example", settings: { flatten_cname: true } };
    expect(parsed(cname, { settings: { ipv4_only: true } }).settings).toEqual({
      flatten_cname: true,
      ipv4_only: true,
    });
    expect(parsed(cname, { type: "A", content: "192.0.2.1" }).settings).toEqual({});
  });
});
