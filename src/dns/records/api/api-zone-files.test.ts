import { describe, expect, it } from "vitest";
import { ownerToken, type ApiResponse } from "../../../../test/helpers/server.ts";
import {
  client,
  createZone,
  messages,
  nameOf,
  server,
  useServer,
} from "../../../../test/helpers/dns-records.ts";

useServer();

async function importFile(
  zone_id: string,
  fields: Record<string, string | Blob>,
  query = "",
  more: Record<string, string> = {},
): Promise<ApiResponse> {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  const response = await fetch(`${server.ready.api}/zones/${zone_id}/dns_records/import${query}`, {
    method: "POST",
    headers: { authorization: `Bearer ${ownerToken}`, ...more },
    body,
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as ApiResponse["body"],
  };
}

describe("zone files", () => {
  it("are exported and imported by the client", async () => {
    const zone_id = await createZone();
    const name = nameOf(zone_id);
    const file = `$TTL 300\nwww A 192.0.2.1 ; the web cf_tags=team:web,cf-proxied:true\nt TXT ${"x".repeat(600)}\n$GENERATE 1-3 h$ A 192.0.2.$\n`;
    expect(await client.dns.records.import({ zone_id, file })).toEqual({
      recs_added: 5,
      total_records_parsed: 5,
    });
    const exported = await client.dns.records.export({ zone_id });
    expect(exported).toContain(
      `www.${name}.\t1\tIN\tA\t192.0.2.1 ; the web cf_tags=team:web,cf-proxied:true\n`,
    );
    expect(await client.dns.records.import({ zone_id, file: exported })).toEqual({
      recs_added: 0,
      total_records_parsed: 5,
    });

    const before = await Array.fromAsync(client.dns.records.list({ zone_id }));
    await client.dns.records.batch({ zone_id, deletes: before.map(({ id }) => ({ id })) });
    await client.dns.records.import({ zone_id, file: exported });
    const after = await Array.fromAsync(client.dns.records.list({ zone_id }));
    const lasting = (all: typeof after) =>
      all.map(
        ({
          id: _id,
          created_on: _c,
          modified_on: _m,
          comment_modified_on: _k,
          tags_modified_on: _t,
          ...rest
        }) => rest,
      );
    expect(lasting(after)).toEqual(lasting(before));
  });

  it("are compared with the zone, line by line, and nothing changes", async () => {
    const zone_id = await createZone();
    await client.dns.records.create({ zone_id, type: "A", name: "same", content: "192.0.2.1", ttl: 300 });
    await client.dns.records.create({ zone_id, type: "A", name: "ttl", content: "192.0.2.2", ttl: 300 });
    await client.dns.records.create({
      zone_id,
      type: "CNAME",
      name: "alias",
      content: "a.example",
      ttl: 300,
    });
    const file = [
      "$TTL 300",
      "same A 192.0.2.1",
      "ttl A 192.0.2.2 ; cf_tags=cf-proxied:true",
      "new A 192.0.2.3",
      "alias A 192.0.2.4",
      "new TXT one",
      "bad A 300.0.0.1",
      "new A 192.0.2.3",
      "@ IN SOA ns.example. hostmaster.example. 1 2 3 4 5",
      "@ NS ns.example.",
    ].join("\n");
    const dry = await importFile(zone_id, { file }, "?dry_run=true");
    expect(dry.status).toBe(200);
    const { recs_added, total_records_parsed, diff } = dry.body.result;
    expect({ recs_added, total_records_parsed }).toEqual({ recs_added: 0, total_records_parsed: 7 });
    expect(diff.counts).toEqual({ added: 2, changed: 1, same: 2, refused: 2, skipped: 2 });
    expect(diff.skipped).toMatchObject([{ line: 9 }, { line: 10 }]);
    expect(diff.added.map(({ line }: { line: number }) => line)).toEqual([4, 6]);
    expect(diff.changed).toMatchObject([{ line: 3, from: { proxied: false }, to: { proxied: true } }]);
    const refused = diff.refused as { line: number; message: string }[];
    expect(refused.map(({ line }) => line).toSorted((a, b) => a - b)).toEqual([5, 7]);
    expect(refused.find(({ line }) => line === 7)?.message).toContain("300.0.0.1");
    expect(await Array.fromAsync(client.dns.records.list({ zone_id }))).toHaveLength(3);
  });

  it("name the line of a fault of syntax in a comparison", async () => {
    const zone_id = await createZone();
    const { body } = await importFile(
      zone_id,
      { file: "www A 192.0.2.1\n$INCLUDE other\n" },
      "?dry_run=true",
    );
    expect(body.result.diff).toMatchObject({ refused: [{ line: 2 }], counts: { added: 0, refused: 1 } });
  });

  it("change records of the zone with update, exactly as the comparison shows", async () => {
    const zone_id = await createZone();
    const name = nameOf(zone_id);
    const create = async (record: object): Promise<string> =>
      (await client.dns.records.create({ zone_id, ...record } as never)).id;
    const noted = { comment: "the web", tags: ["team:web"] };
    const kept = await create({ type: "A", name: "kept", content: "192.0.2.1", proxied: true, ...noted });
    const slow = await create({ type: "A", name: "slow", content: "192.0.2.2", ttl: 300, ...noted });
    const mail = await create({ type: "MX", name: "@", content: "mail.example", priority: 10, ttl: 300 });
    const alias = await create({ type: "CNAME", name: "alias", content: "a.example", ttl: 300 });
    const other = await create({ type: "A", name: "other", content: "192.0.2.9", ttl: 300 });
    const file = [
      "kept 300 A 192.0.2.1", // a proxied record has no TTL of its own
      "slow 600 A 192.0.2.2",
      "@ MX 10 mail.example.",
      "alias CAA 0 issue ca.example", // allowed beside the changed alias only
      "alias 1 CNAME a.example. ; by hand cf_tags=team:dns,cf-proxied:true",
      "new 120 A 192.0.2.3 ; cf_tags=",
      "slow 900 A 192.0.2.2",
      "new A 192.0.2.3",
    ].join("\n");
    const before = await client.dns.records.export({ zone_id });
    const dry = await importFile(zone_id, { file, proxied: "true" }, "?dry_run=true&update=true");
    const { counts, added, changed, skipped } = dry.body.result.diff;
    expect(counts).toEqual({ added: 2, changed: 2, same: 3, refused: 0, skipped: 1 });
    expect(skipped).toEqual([{ line: 7, message: expect.stringContaining("line 2") as string }]);
    const lasting = (text: string): string[] => text.split("\n").filter((line) => !/^;|\tSOA\t/.test(line));
    expect(lasting(await client.dns.records.export({ zone_id }))).toEqual(lasting(before));

    const done = await importFile(zone_id, { file, proxied: "true" }, "?update=true");
    expect(done.body.result).toEqual({ recs_added: 2, recs_changed: 2, total_records_parsed: 8 });
    expect(messages(done)).toEqual([expect.stringContaining("Zone file, line 7 was left out") as string]);
    const now = await Array.fromAsync(client.dns.records.list({ zone_id }));
    const of = (id: string) => now.find((each) => each.id === id);
    expect(now).toHaveLength(7);
    expect(of(kept)).toMatchObject({ ttl: 1, proxied: true, ...noted });
    expect(of(slow)).toMatchObject({ ttl: 600, proxied: false, ...noted });
    expect(of(alias)).toMatchObject({ ttl: 1, proxied: true, comment: "by hand", tags: ["team:dns"] });
    for (const id of [kept, mail, other]) expect(of(id)!.modified_on).toBe(of(id)!.created_on);
    // All that the comparison shows, and nothing else.
    type Line = { record?: { name: string; type: string }; to?: { name: string; type: string } };
    for (const { record, to } of [...added, ...changed] as Line[]) {
      const shown = (record ?? to)!;
      expect(now).toContainEqual(expect.objectContaining(shown));
    }
    const again = await importFile(zone_id, { file }, "?update=true");
    expect(again.body.result).toMatchObject({ recs_added: 0, recs_changed: 0 });
    expect(before).not.toContain(`new.${name}`);
  });

  it("change nothing with update if a changed record conflicts with others", async () => {
    const zone_id = await createZone();
    const cname = { type: "CNAME", name: "c", content: "t.example", proxied: true } as const;
    await client.dns.records.create({ zone_id, ttl: 1, ...cname });
    await client.dns.records.create({ zone_id, type: "TXT", name: "c", content: '"beside"', ttl: 60 });
    const file = "new 60 A 192.0.2.1\nc CNAME t.example. ; cf_tags=cf-proxied:false\n";
    const before = await client.dns.records.export({ zone_id });
    const dry = await importFile(zone_id, { file }, "?dry_run=true&update=true");
    expect(dry.body.result.diff).toMatchObject({
      counts: { added: 1, changed: 0, refused: 1 },
      refused: [{ line: 2, message: expect.stringContaining("TXT record") as string }],
    });
    const answer = await importFile(zone_id, { file }, "?update=true");
    expect(answer.body.errors).toMatchObject([
      { code: 81059, message: expect.stringContaining("line 2") as string },
    ]);
    const records = (text: string): string => text.slice(text.indexOf("$ORIGIN"));
    expect(records(await client.dns.records.export({ zone_id }))).toBe(records(before));
  });

  it("are imported only into the zone that was compared, if the caller says so", async () => {
    const zone_id = await createZone();
    const file = "www 300 A 192.0.2.1\n";
    const { headers } = await importFile(zone_id, { file }, "?dry_run=true&update=true");
    const condition = { "if-match": headers.get("etag")! };
    await client.dns.records.create({ zone_id, type: "A", name: "www", content: "192.0.2.1", ttl: 60 });
    for (const query of ["?update=true", "?dry_run=true"]) {
      const { status, body } = await importFile(zone_id, { file }, query, condition);
      expect([status, body.errors]).toMatchObject([412, [{ code: 10412 }]]);
    }
    expect((await Array.fromAsync(client.dns.records.list({ zone_id }))).map(({ ttl }) => ttl)).toEqual([60]);
    const again = await importFile(zone_id, { file }, "?dry_run=true&update=true");
    const seen = { "if-match": again.headers.get("etag")! };
    expect((await importFile(zone_id, { file }, "?update=true", seen)).body.result).toMatchObject({
      recs_changed: 1,
    });
  });

  it("leave an entry in the audit log when they are imported, not when they are compared", async () => {
    const zone_id = await createZone();
    await importFile(zone_id, { file: "a 60 A 192.0.2.1\n" }, "?dry_run=true&update=true");
    await importFile(zone_id, { file: "a 60 A 192.0.2.1\n" }, "?update=true");
    const path = `/accounts/${server.ready.account_id}/logs/audit?zone_id=${zone_id}`;
    const { body } = await server.call("GET", `${path}&since=2020-01-01&before=2100-01-01`);
    // The platform's own entries, such as of the zone's activation, have no call.
    const entries = body.result as { raw: { uri: string } | null }[];
    expect(entries.filter(({ raw }) => raw?.uri.endsWith("/import") === true)).toHaveLength(1);
  });

  it("have the zone's current serial", async () => {
    const zone_id = await createZone();
    const serial = async (): Promise<number> =>
      Number(/SOA\t\S+ \S+ (\d+)/.exec(await client.dns.records.export({ zone_id }))![1]);
    const before = await serial();
    await client.dns.records.create({ zone_id, type: "A", name: "a", content: "192.0.2.1", ttl: 60 });
    expect(await serial()).toBeGreaterThan(before);
  });

  it("are accepted as a field or a file, with a flag for proxied records", async () => {
    const zone_id = await createZone();
    const text = "a A 192.0.2.1\n";
    const asFile = new File([text], "zone.txt", { type: "text/plain" });
    expect((await importFile(zone_id, { file: asFile, proxied: "true" })).body.result).toMatchObject({
      recs_added: 1,
    });
    expect(await Array.fromAsync(client.dns.records.list({ zone_id, proxied: true }))).toHaveLength(1);
    expect(
      (await importFile(zone_id, { file: new File([new Uint8Array([0xff])], "z") })).body.errors,
    ).toMatchObject([{ code: 9207 }]);
    expect((await importFile(zone_id, { file: text, proxied: "yes" })).status).toBe(400);
    expect((await importFile(zone_id, { text })).status).toBe(400);
  });

  it("report values that the import changed", async () => {
    const answer = await importFile(await createZone(), { file: "a 604800 A 192.0.2.1\n" });
    expect(messages(answer)).toEqual(["Zone file, line 1: the TTL 604800 became 86400"]);
  });

  it("are imported as a whole or not at all", async () => {
    const zone_id = await createZone();
    await client.dns.records.create({ zone_id, type: "CNAME", name: "c", content: "t.example", ttl: 60 });
    for (const [file, why] of [
      ["new A 192.0.2.1\nbad A nonsense\n", "Zone file, line 2: Content for A record"],
      [
        "new A 192.0.2.1\nc A 192.0.2.1\n",
        "Zone file, line 2: A CNAME record with that host already exists.",
      ],
      ["new A 192.0.2.1\n$INCLUDE x\n", "Zone file, line 2: $INCLUDE directive not allowed"],
    ] as const) {
      const answer = await importFile(zone_id, { file });
      expect(answer.body.errors).toMatchObject([
        { code: 81059, message: expect.stringContaining(why) as string },
      ]);
    }
    expect(await Array.fromAsync(client.dns.records.list({ zone_id }))).toHaveLength(1);
  });

  it("are one part of a form of few parts, and few faults are reported", async () => {
    const zone_id = await createZone();
    const errorsFor = async (count: number): Promise<string[]> => {
      const part = (i: number): string => `--b\r\ncontent-disposition: form-data; name="f${i}"\r\n\r\n\r\n`;
      const form = `${Array.from({ length: count }, (_, i) => part(i)).join("")}--b--\r\n`;
      const headers = { "content-type": "multipart/form-data; boundary=b" };
      const { body } = await server.call("POST", `/zones/${zone_id}/dns_records/import`, form, headers);
      return body.errors.map(({ message }) => message);
    };
    expect(await errorsFor(50)).toHaveLength(10);
    expect(await errorsFor(10_000)).toEqual(["Expected at most 100 parts in the form"]);
  });
});
