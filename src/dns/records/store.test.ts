import { afterEach, beforeEach, expect, it } from "vitest";
import { nothingToReload } from "../../platform/storage/changes/listeners.ts";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { turnsInWrites } from "../../../test/helpers/turns-in-writes.ts";
import { Accounts } from "../../control/accounts/accounts.ts";
import type { Change, Storage } from "../../platform/storage/storage.ts";
import { staticActivation } from "../../control/zones/activation.ts";
import { plans } from "../../control/zones/plans.ts";
import type { Zone } from "../../control/zones/zone.ts";
import { Zones } from "../../control/zones/zones.ts";
import { emptyBatch } from "./batch.ts";
import { recordFilter, RecordListQuery } from "./filter.ts";
import { parseRecord, type RecordInput } from "./record.ts";
import { DnsRecords } from "./records.ts";
import * as store from "./store.ts";
import { canonical } from "./types/testing.ts";

describeStorage("records", (open) => {
  let storage: Storage;
  let zones: Zones;
  let records: DnsRecords;
  let zone: Zone;
  let accountId: string;
  beforeEach(async () => {
    storage = await open();
    const accounts = new Accounts(storage);
    const user = await accounts.createUser({ email: "owner@example.com", apiKeyHash: null });
    const account = await accounts.create({ name: "a", type: "enterprise", ownerUserId: user.id });
    accountId = account.id;
    zones = new Zones(storage, {
      nameServers: ["a.ns.example"],
      defaultPlan: "enterprise",
      activation: staticActivation,
    });
    records = new DnsRecords(storage);
    zone = await zones.create({ accountId, name: "example.com", type: "full" });
  });
  afterEach(() => storage.close());

  const a = (name: string, content = "192.0.2.1", more: Partial<RecordInput> = {}): RecordInput => ({
    type: "A",
    name,
    content,
    ...more,
  });
  const query = (filter: Record<string, unknown> = {}) =>
    records.list(zone, recordFilter(RecordListQuery.parse(filter), zone.name));
  const names = async (filter: Record<string, unknown>): Promise<string[]> =>
    (await query(filter)).records.map(({ name }) => name.split(".")[0]!);
  const serial = async (): Promise<number> => (await records.export(zone)).zone.serial;

  it("stores every field of every kind", async () => {
    const inputs: RecordInput[] = [
      a("full", "192.0.2.1", {
        comment: "it's 100% “kept” 🧥",
        tags: ["a:b", "c"],
        ttl: 300,
        settings: { ipv4_only: true },
      }),
      { type: "SRV", name: "_a._tcp", data: { priority: 0, weight: 1, port: 2, target: "t.example" } },
      { type: "MX", name: "@", content: "mail.example", priority: 0 },
      { type: "TXT", name: "t", content: String.raw`"a\"b" "\000"` },
      { type: "CNAME", name: "c", content: "t.example", proxied: true },
    ];
    for (const input of inputs) {
      const created = await records.create(zone, input);
      expect(await records.find(zone, created.id)).toEqual(created);
    }
    expect((await query()).totalCount).toBe(inputs.length);
    expect(await records.count(zone)).toBe(inputs.length);
    expect(await records.countOfAccount(accountId)).toBe(inputs.length);
    expect(await records.countOfAccount("0".repeat(32))).toBe(0);
  });

  it("lets other work run while an import of many records is written", async () => {
    const fields = parseRecord(a("many"), zone.name, plans.enterprise);
    const entries = Array.from({ length: 5000 }, (_, i) => ({
      line: i + 1,
      fields: { ...fields, name: `h${i}.${zone.name}` },
      said: {},
    }));
    const hadTurn = turnsInWrites(storage);
    expect((await records.import(zone, entries)).added).toHaveLength(5000);
    expect(hadTurn()).toBe(true);
  });

  it("finds every value by each form that a client may send", async () => {
    const missed: unknown[] = [];
    for (const [type, written] of canonical) {
      const name = type === "SRV" || type === "TLSA" ? "_a._tcp.filter" : "filter";
      const { id } = await records.create(zone, { type, name, content: written });
      // White space inside quotes and in unquoted text is part of the value.
      const tabbed =
        type === "TXT"
          ? written
          : written.replaceAll(/"(?:[^"\\]|\\.)*"| /g, (part) => (part === " " ? "\t" : part));
      const spellings = [written, tabbed, ` ${written} `];
      for (const content of spellings) {
        for (const filter of [{ content, type }, { content }, { "content.exact": content, match: "any" }]) {
          const ids = (await query(filter)).records.map((record) => record.id);
          if (!ids.includes(id)) missed.push({ type, filter });
        }
      }
      expect((await query({ content: "no such value", type })).totalCount).toBe(0);
      await records.delete(zone, id);
    }
    expect(missed).toEqual([]);
  });

  it("distinguishes records of one host by the priority in the filter", async () => {
    for (const priority of [10, 20])
      await records.create(zone, { type: "MX", name: "@", content: "m", priority });
    expect((await query({ type: "MX", content: "M." })).totalCount).toBe(2);
    expect((await query({ type: "MX", content: "10 m" })).records).toMatchObject([{ priority: 10 }]);
  });

  it("finds the records hidden by a delegation, and the delegations above a name", async () => {
    const ns = (name: string): RecordInput => ({ type: "NS", name, content: "ns.example.org" });
    for (const input of [
      ns("@"),
      ns("sub"),
      a("sub", "192.0.2.9"),
      a("www.sub"),
      ns("deep.sub"),
      a("subway"),
    ])
      await records.create(zone, input);
    const found = async (filter: object) =>
      (await query({ ...filter, match: "any", name: "none", content: "none" })).totalCount;
    expect(await found({ shadowed_by_name: "sub" })).toBe(0);
    expect(await names({ shadowed_by_name: "sub.example.com", order: "content" })).toEqual([
      "www",
      "sub",
      "deep",
    ]);
    expect(await names({ shadowing_name: "www.deep.sub" })).toEqual(["deep", "sub"]);
    await expect(async () => query({ shadowing_name: "example.com" })).rejects.toMatchObject({
      kind: "dns.shadowOfApex",
      pointer: "/query/shadowing_name",
    });
  });

  it("changes and deletes records, and notifies listeners of every affected name", async () => {
    const changes: Change[] = [];
    storage.onChange(async (each) => void changes.push(...each), nothingToReload);
    const { id } = await records.create(zone, a("one"));
    await records.edit(zone, id, { name: "two" });
    await records.replace(zone, id, a("two", "192.0.2.2"));
    await records.delete(zone, id);
    const notified = changes
      .filter(({ kind }) => kind === "dns_record")
      .map((change) => change.id.split(".")[0]);
    expect(notified).toEqual(["one", "one", "two", "two", "two"]);
    await expect(records.find(zone, id)).rejects.toMatchObject({ kind: "dns.notFound" });
    await expect(records.delete(zone, id)).rejects.toMatchObject({ kind: "dns.notFound" });
    expect(await records.count(zone)).toBe(0);
  });

  it("raises the serial once for a batch, and not at all for one that fails or changes nothing", async () => {
    const first = await serial();
    const { posts } = await records.batch(zone, { ...emptyBatch, posts: [a("a"), a("b"), a("c")] });
    expect(posts).toHaveLength(3);
    const second = await serial();
    expect(second).toBeGreaterThan(first);
    const before = (await query()).records;
    const failing = records.batch(zone, {
      ...emptyBatch,
      deletes: [{ id: posts[0]!.id }],
      posts: [a("d"), a("e"), a("f", "none")],
    });
    await expect(failing).rejects.toMatchObject({ kind: "dns.badContent", pointer: "/body/posts/2/content" });
    await records.edit(zone, posts[0]!.id, { content: "192.0.2.1" });
    await records.batch(zone, emptyBatch);
    expect((await query()).records).toEqual(before);
    expect(await serial()).toBe(second);
    const swapped = await records.batch(zone, {
      ...emptyBatch,
      deletes: [{ id: posts[0]!.id }],
      posts: [{ type: "CNAME", name: "a", content: "b.example.com" }],
    });
    expect([swapped.deletes, swapped.posts].map((each) => each.length)).toEqual([1, 1]);
    expect(await serial()).toBe(second + 1);
  });

  it("creates only one of many concurrent records with the same name", async () => {
    const wanted = Array.from({ length: 8 }, (_, i) => ({
      type: "CNAME",
      name: "w",
      content: `t${i}.example`,
    }));
    const outcomes = await Promise.allSettled(wanted.map((input) => records.create(zone, input)));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await names({ name: "w.example.com" })).toEqual(["w"]);
  });

  it("finds no deleted zone, and no record of another zone", async () => {
    const other = await zones.create({ accountId, name: "example.net", type: "full" });
    const { id } = await records.create(zone, a("x"));
    await expect(records.find(other, id)).rejects.toMatchObject({ kind: "dns.notFound" });
    await expect(records.edit(other, id, { ttl: 60 })).rejects.toMatchObject({ kind: "dns.notFound" });
    await zones.delete(other);
    await expect(records.create(other, a("x"))).rejects.toMatchObject({ kind: "zones.notFound" });
  });

  it("enforces the plan's number of records", async () => {
    const small: Zone = { ...zone, plan: "free" };
    const many = Array.from({ length: 1000 }, (_, i) => a(`h${i}`));
    await records.batch(small, { ...emptyBatch, posts: many });
    await expect(records.create(small, a("more"))).rejects.toMatchObject({ kind: "dns.quota" });
    const [first] = (await query()).records;
    await records.batch(small, { ...emptyBatch, deletes: [{ id: first!.id }], posts: [a("more")] });
    expect(await records.count(zone)).toBe(1000);
  });

  it("imports new records, or nothing if any record conflicts", async () => {
    const fields = (input: RecordInput) =>
      records.create(zone, input).then(async (made) => {
        await records.delete(zone, made.id);
        return made;
      });
    const one = await fields(a("one"));
    const two = await fields(a("two"));
    const cname = await fields({ type: "CNAME", name: "two", content: "t.example" });
    const entries = [one, two, one].map((each, index) => ({ line: index + 1, fields: each, said: {} }));
    expect((await records.import(zone, entries)).added).toHaveLength(2);
    expect(await records.import(zone, entries)).toMatchObject({ added: [], changed: [], same: 3 });
    const failing = records.import(zone, [
      { line: 1, fields: { ...one, content: "192.0.2.7" }, said: {} },
      { line: 2, fields: cname, said: {} },
    ]);
    await expect(failing).rejects.toMatchObject({
      kind: "dns.importFault",
      message: expect.stringContaining("line 2") as string,
    });
    expect(await names({})).toEqual(["one", "two"]);
  });

  it("filters by every operator of every field", async () => {
    await records.batch(zone, {
      ...emptyBatch,
      posts: [
        a("alpha", "192.0.2.1", {
          comment: "Front Door",
          tags: ["team:web", "important", "note:a.b"],
        }),
        a("beta", "192.0.2.2", { proxied: true, ttl: 1, tags: ["team:webmail"] }),
        a("under_score", "198.51.100.1", { comment: "50% off", ttl: 600 }),
        {
          type: "TXT",
          name: "gamma",
          content: "hello world",
          tags: ["Team:Mail", "other:web", "we_b:x"],
          ttl: 60,
        },
        { type: "MX", name: "delta", content: "mail.example", priority: 1, comment: "Mail", ttl: 120 },
      ],
    });
    const cases: [filter: Record<string, unknown>, found: string[]][] = [
      [{ type: "A" }, ["alpha", "beta", "under_score"]],
      [{ proxied: "true" }, ["beta"]],
      [{ proxied: "false", type: "A" }, ["alpha", "under_score"]],
      [{ name: "ALPHA.Example.com." }, ["alpha"]],
      [{ "name.exact": "alpha.example.com" }, ["alpha"]],
      [{ "name.exact": "alpha" }, []],
      [{ "name.contains": "ET" }, ["beta"]],
      [{ "name.contains": "_" }, ["under_score"]],
      [{ "name.startswith": "al" }, ["alpha"]],
      [{ "name.endswith": "a.example.com" }, ["alpha", "beta", "delta", "gamma"]],
      [{ content: "192.0.2.1" }, ["alpha"]],
      [{ "content.exact": "HELLO world" }, ["gamma"]],
      [{ "content.exact": '"hello world"' }, ["gamma"]],
      [{ "content.contains": "2.0.2." }, ["alpha", "beta"]],
      [{ "content.startswith": "hello" }, ["gamma"]],
      [{ "content.startswith": "198" }, ["under_score"]],
      [{ "content.endswith": "world" }, ["gamma"]],
      [{ "content.endswith": ".1" }, ["alpha", "under_score"]],
      [{ comment: "front door" }, ["alpha"]],
      [{ "comment.exact": "front" }, []],
      [{ "comment.contains": "%" }, ["under_score"]],
      [{ "comment.startswith": "FR" }, ["alpha"]],
      [{ "comment.endswith": "il" }, ["delta"]],
      [{ "comment.present": "" }, ["alpha", "delta", "under_score"]],
      [{ "comment.absent": "true" }, ["beta", "gamma"]],
      [{ tag: "important" }, ["alpha"]],
      [{ tag: "TEAM" }, ["alpha", "beta", "gamma"]],
      [{ tag: "team:WEB" }, ["alpha"]],
      [{ "tag.present": "team" }, ["alpha", "beta", "gamma"]],
      [{ "tag.present": "we_b" }, ["gamma"]],
      [{ "tag.present": "web" }, []],
      [{ "tag.absent": "team" }, ["delta", "under_score"]],
      [{ "tag.exact": "team:mail" }, ["gamma"]],
      [{ "tag.contains": "team:ail" }, ["beta", "gamma"]],
      [{ "tag.startswith": "team:web" }, ["alpha", "beta"]],
      [{ "tag.endswith": "team:web" }, ["alpha"]],
      [{ "tag.endswith": "team:mail" }, ["beta", "gamma"]],
      [{ tag: ["team", "other"] }, ["gamma"]],
      [{ tag: ["important", "other"], tag_match: "any" }, ["alpha", "gamma"]],
      [{ tag: ["important", "other"], tag_match: "any", "name.contains": "gam" }, ["gamma"]],
      [{ search: "mail" }, ["beta", "delta", "gamma"]],
      [{ search: "DOOR" }, ["alpha"]],
      [{ search: "%" }, ["under_score"]],
      [{ search: "mX" }, ["delta"]],
      [{ search: "team:WEB" }, ["alpha", "beta"]],
      [{ match: "any", type: "MX", proxied: "true" }, ["beta", "delta"]],
      [{ match: "all", type: "MX", proxied: "true" }, []],
      [{ match: "any", tag: ["team", "important"], type: "MX" }, ["alpha", "delta"]],
      [{ order: "type", direction: "desc" }, ["gamma", "delta", "alpha", "beta", "under_score"]],
      [{ order: "content" }, ["gamma", "alpha", "beta", "under_score", "delta"]],
      [{ order: "ttl", direction: "desc" }, ["under_score", "delta", "gamma", "alpha", "beta"]],
      [{ order: "proxied", direction: "desc", per_page: 1 }, ["beta"]],
      [{ order: "name", direction: "desc", page: 2, per_page: 2 }, ["delta", "beta"]],
      [{ page: 9 }, []],
    ];
    for (const [filter, found] of cases) expect([filter, await names(filter)]).toEqual([filter, found]);
    expect(await query({ page: 2, per_page: 2 })).toMatchObject({ totalCount: 5, records: { length: 2 } });
    expect(await query({ page: 9, per_page: 2 })).toMatchObject({ totalCount: 5, records: [] });
    expect(await query({ type: "A", per_page: 1 })).toMatchObject({ totalCount: 3, records: { length: 1 } });
  });

  it("treats any text in a filter literally", async () => {
    await records.create(zone, a("x"));
    for (const text of ["'", '"', "\\", "%", "_", "\\%", "*", "[", "a:b:c", ":", "🧥", ";--"]) {
      for (const key of [
        "name.contains",
        "content.exact",
        "comment.endswith",
        "tag.contains",
        "tag",
        "search",
      ]) {
        expect((await query({ [key]: text })).records).toEqual([]);
      }
    }
  });

  it("returns a name's hosts to the edge in one order, for each kind of read", async () => {
    await records.create(zone, a("h", "192.0.2.2"));
    await records.create(zone, a("h", "192.0.2.1", { proxied: true }));
    const hosts = (await store.listHosts(storage.read)).map(({ content, proxied }) => [content, proxied]);
    expect(new Set(hosts.map(String))).toEqual(new Set(["192.0.2.2,false", "192.0.2.1,true"]));
    const atName = await store.listAtName(storage.read, zone.id, "h.example.com");
    expect(atName.map(({ content, proxied }) => [content, proxied])).toEqual(hosts);
  });
});
