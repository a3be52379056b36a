import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Cloudflare from "cloudflare";
import sharp from "sharp";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { startTestServer } from "../helpers/server.ts";

let edge: Selvedge;
beforeAll(async () => {
  edge = await startSelvedge({ seed: "control" });
});
afterAll(() => edge.close());
beforeEach(() => edge.reset());

const clientOf = ({ env }: Pick<Selvedge, "env">, maxRetries = 0): Cloudflare =>
  new Cloudflare({
    baseURL: env["CLOUDFLARE_BASE_URL"]!,
    apiToken: env["CLOUDFLARE_API_TOKEN"]!,
    maxRetries,
  });
const zoneOf = async (platform: Selvedge, name = "shop.example") =>
  clientOf(platform).zones.create({ account: { id: platform.accountId }, name, type: "full" });
const record = (platform: Selvedge, zone_id: string, name: string, maxRetries = 0) =>
  clientOf(platform, maxRetries).dns.records.create({
    zone_id,
    type: "A",
    name,
    content: "192.0.2.1",
    ttl: 60,
  });
const statusOf = (error: unknown): number | undefined => (error as { status?: number }).status;

describe("reset and snapshots", () => {
  it("nothing earlier is seen after a reset: API, edge and name server", async () => {
    const zone = await zoneOf(edge);
    await record(edge, zone.id, "www.shop.example");
    expect(await edge.dig("www.shop.example")).toEqual(["192.0.2.1"]);
    await edge.reset();
    expect((await clientOf(edge).zones.list()).result).toEqual([]);
    await expect(edge.dig("www.shop.example")).rejects.toThrow(/EREFUSED/);
    expect((await edge.fetch("http://www.shop.example/")).status).toBe(404);
    expect(await edge.calls.all({ operation: "zone_create" })).toEqual([]);
  });

  it("a call that is in flight at a reset is answered with 409, and cannot write after it", async () => {
    const zone = await zoneOf(edge);
    const fault = await edge.faults.api({
      on: { operation: "dns_record_create" },
      then: { delayMs: 1000 },
    });
    const inFlight = record(edge, zone.id, "www.shop.example").catch(statusOf);
    await expect.poll(async () => fault.hits()).toBe(1);
    // The zone's id comes again with the seed, so the record would fit.
    await edge.reset();
    expect((await zoneOf(edge)).id).toBe(zone.id);
    expect(await inFlight).toBe(409);
    expect((await clientOf(edge).dns.records.list({ zone_id: zone.id })).result).toEqual([]);
  });

  it("a snapshot brings the same answers back, and the state is the same for the same content", async () => {
    const zone = await zoneOf(edge);
    await record(edge, zone.id, "www.shop.example");
    await edge.snapshot("one record");
    const before = await edge.state();
    await record(edge, zone.id, "api.shop.example");
    await clientOf(edge).zones.delete({ zone_id: zone.id });
    expect(await edge.state()).not.toEqual(before);
    await edge.restore("one record");
    expect(await edge.state()).toEqual(before);
    expect(await edge.dig("www.shop.example")).toEqual(["192.0.2.1"]);
    await edge.removeSnapshot("one record");
    await expect(edge.restore("one record")).rejects.toThrow(
      "Expected one of the snapshots start but received",
    );
    await edge.snapshot("one record");
    await expect(edge.restore("missing")).rejects.toThrow("Expected one of the snapshots start, one record");
  });

  it("a fork begins with the same state, or that of a snapshot, and neither sees the other", async () => {
    const zone = await zoneOf(edge);
    await edge.snapshot("empty zone");
    await edge.clock.advance("30 days");
    await record(edge, zone.id, "later.shop.example");
    await using other = await edge.fork("empty zone");
    expect((await other.clock.now()).getTime()).toBeLessThan(
      (await edge.clock.now()).getTime() - 29 * 86_400_000,
    );
    await expect(edge.fork("none")).rejects.toThrow(/one of the snapshots .*empty zone but received none$/);
    await edge.restore("empty zone");
    await record(other, zone.id, "fork.shop.example");
    expect((await clientOf(edge).dns.records.list({ zone_id: zone.id })).result).toEqual([]);
    expect(await other.dig("fork.shop.example")).toEqual(["192.0.2.1"]);
  });

  it("ids follow from the seed and not from the order of calls", async () => {
    const names = ["a.example", "b.example", "c.example"];
    const idsOf = async (platform: Selvedge, order: readonly string[]): Promise<string[]> => {
      const zones = await Promise.all(order.map((name) => zoneOf(platform, name)));
      return zones.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(({ id }) => id);
    };
    const first = await idsOf(edge, names);
    await edge.reset();
    expect(await idsOf(edge, names.toReversed())).toEqual(first);
    await using other = await startSelvedge({ seed: "other" });
    expect((await idsOf(other, names)).filter((id) => first.includes(id))).toEqual([]);
  });
});

describe("time", () => {
  it("a frozen clock stands, and answers show its time", async () => {
    await edge.clock.set("2040-01-01T00:00:00Z");
    await edge.clock.freeze();
    const at = await edge.clock.now();
    const zone = await zoneOf(edge);
    const changed = await clientOf(edge).zones.edit({ zone_id: zone.id, paused: true });
    expect([zone.created_on, changed.modified_on]).toEqual([at.toISOString(), at.toISOString()]);
    await expect(edge.clock.set("2030-01-01T00:00:00Z")).rejects.toThrow("only reset and restore go back");
    await edge.reset();
    expect((await edge.clock.now()).getFullYear()).toBeLessThan(2040);
  });

  it("a token of an hour is refused two hours on", async () => {
    const token = await edge.tokenWith(["DNS Write", "Zone Read"], { expires: "1 hour" });
    const client = edge.client(Cloudflare, token);
    await expect(edge.tokenWith(["Zone Read"], { expires: "1 m" })).rejects.toThrow("Expected a duration");
    expect((await client.zones.list()).result).toEqual([]);
    await edge.clock.advance("2 hours");
    expect(await client.zones.list().catch(statusOf)).toBe(401);
  });

  it("a key of an hour and a signed URL are over two hours on", async () => {
    const client = clientOf(edge);
    const account_id = edge.accountId;
    const { id } = await client.kv.namespaces.create({ account_id, title: "prices" });
    const key = { account_id, namespace_id: id };
    await client.kv.namespaces.values.update("bread", { ...key, value: "3", expiration_ttl: 3600 });
    const pixel = await sharp({ create: { width: 1, height: 1, channels: 3, background: "teal" } })
      .png()
      .toBuffer();
    const image = await client.images.v1.create({
      account_id,
      file: new File([new Uint8Array(pixel)], "pixel.png"),
      requireSignedURLs: true,
    });
    const { keys } = await client.images.v1.keys.list({ account_id });
    const url = new URL(image.variants![0]!);
    const expires = Math.floor((await edge.clock.now()).getTime() / 1000) + 3600;
    url.searchParams.set("exp", String(expires));
    const signature = createHmac("sha256", keys![0]!.value!)
      .update(url.pathname + url.search)
      .digest("hex");
    url.searchParams.set("sig", signature);
    const seen = async (): Promise<unknown[]> => [
      await client.kv.namespaces.values.get("bread", key).then(() => 200, statusOf),
      (await fetch(url)).status,
    ];
    expect(await seen()).toEqual([200, 200]);
    await edge.clock.advance("2 hours");
    expect(await seen()).toEqual([404, 403]);
  });
});

describe("faults", () => {
  it("429 on the third call: the official client waits and repeats", async () => {
    const zone = await zoneOf(edge);
    await using fault = await edge.faults.api({
      on: { operation: "dns_record_create" },
      calls: 3,
      then: { status: 429, retryAfter: 1 },
    });
    for (const name of ["a", "b", "c", "d"]) await record(edge, zone.id, `${name}.shop.example`, 2);
    const calls = await edge.calls.all({ operation: "dns_record_create" });
    expect(calls.map(({ status }) => status)).toEqual([200, 200, 429, 200, 200]);
    expect(await fault.hits()).toBe(1);
  });

  it("the change is made and its answer is lost: a naive repeat meets the record", async () => {
    const zone = await zoneOf(edge);
    await edge.faults.api({
      on: { operation: "dns_record_create", body: { name: "www.shop.example" } },
      times: 1,
      then: { connection: "reset", when: "after" },
    });
    await expect(record(edge, zone.id, "www.shop.example")).rejects.toThrow("Connection error");
    expect(await edge.dig("www.shop.example")).toEqual(["192.0.2.1"]);
    await expect(record(edge, zone.id, "www.shop.example")).rejects.toThrow("81058");
    const [lost] = await edge.calls.all({ operation: "dns_record_create" });
    expect(lost).toMatchObject({ fault: expect.stringMatching(/^fault-/) as string, status: 500 });
    expect(lost!.changed).toContain("dns_record www.shop.example");
  });

  it.each(["reset", "cut-headers", "cut-body"] as const)("%s breaks the connection", async (connection) => {
    await edge.faults.api({ on: { operation: "zone_list" }, then: { connection } });
    const listed = fetch(`${edge.urls.api}/zones`, { headers: { authorization: `Bearer ${edge.token}` } });
    await expect(listed.then((answer) => answer.text())).rejects.toThrow();
    expect((await edge.calls.waitFor({ operation: "zone_list" })).fault).toMatch(/^fault-/);
  });

  it("a probability hits the same calls with the same seed", async () => {
    const round = async (): Promise<boolean[]> => {
      await edge.faults.api({ on: { method: "GET" }, probability: 0.4, then: { status: 503 } });
      for (let i = 0; i < 20; i++)
        await clientOf(edge)
          .zones.list()
          .catch(() => {});
      return (await edge.calls.all()).map(({ status }) => status === 503);
    };
    const first = await round();
    expect(new Set(first)).toEqual(new Set([true, false]));
    await edge.reset();
    expect(await round()).toEqual(first);
  });

  it.each<[kind: "api" | "origin" | "dns", then: unknown, message: string]>([
    [
      "api",
      { connection: "refuse" },
      'one of "reset", "hang", "cut-headers", "cut-body" for then.connection',
    ],
    ["origin", "refused", 'Expected one of "refuse", "reset", "hang"'],
    ["origin", { status: 99 }, "Expected at least 200 for then.status but received 99"],
    ["origin", { latency: 5 }, 'Unknown field "latency" in then'],
    ["origin", { latencyMs: 5, jitter: 1 }, 'Unknown field "jitter" in then'],
    ["dns", { delayMs: "5" }, 'Expected a number for then.delayMs but received "5"'],
  ])("a fault of the %s that cannot be is refused by name: %j", async (kind, then, message) => {
    await expect(edge.faults[kind]({ then: then as never })).rejects.toThrow(message);
  });

  it.each<[Parameters<Selvedge["faults"]["api"]>[0], string]>([
    [{ on: { operation: "zone_crate" }, then: { status: 500 } }, "Did you mean zone_create?"],
    [{ on: { operation: ["zone_list", "?"] }, then: { status: 500 } }, 'received "?"'],
    [{ on: { method: "FETCH" }, then: { status: 500 } }, "a method such as GET"],
    [{ on: { path: "(a+)+$" }, then: { status: 500 } }, "a path such as /zones"],
    [{ calls: [3, 1], then: { status: 500 } }, "the smaller number first for calls"],
    [{ then: { delayMs: [9, 1] } }, "the smaller number first for then.delayMs"],
    [{ then: { retryAfter: 1 } }, "a status"],
    [{ then: {} }, "a status, a connection or delayMs"],
  ])("a fault that could never hit a call is refused: %j", async (fault, message) => {
    await expect(edge.faults.api(fault)).rejects.toThrow(message);
  });

  it("names that match nothing are refused elsewhere too", async () => {
    await expect(edge.faults.dns({ name: "..", then: "drop" })).rejects.toThrow("a name such as");
    await expect(edge.faults.resolver({ name: "a b", then: "timeout" })).rejects.toThrow("a name such as");
    await expect(edge.calls.all({ operation: "zone_lst" })).rejects.toThrow("Did you mean zone_list?");
    await expect(edge.state(["zone"])).rejects.toThrow(/Expected tables of .*zones.* but received "zone"/);
  });

  it("of several faults that fit, the newest is met, also if the body decides", async () => {
    const every = await edge.faults.api({ then: { status: 500 } });
    const late = await edge.faults.api({ on: { operation: "zone_list" }, calls: 2, then: { status: 418 } });
    const named = await edge.faults.api({ on: { body: { name: "a.example" } }, then: { status: 429 } });
    const post = async (name: string, token = edge.token): Promise<number> =>
      (
        await fetch(`${edge.urls.api}/zones`, {
          method: "POST",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          body: JSON.stringify({ name, account: { id: edge.accountId }, type: "full" }),
        })
      ).status;
    const list = async (): Promise<unknown> => clientOf(edge).zones.list().catch(statusOf);
    expect([await post("a.example"), await post("b.example"), await post("a.example", "none")]).toEqual([
      429, 500, 500,
    ]);
    expect([await list(), await list(), await list()]).toEqual([500, 418, 500]);
    expect(await Promise.all([every, late, named].map(async (fault) => fault.hits()))).toEqual([4, 1, 1]);
  });

  it("a fault without conditions hits every call", async () => {
    await edge.faults.api({ then: { status: 503 } });
    await expect(clientOf(edge).zones.list()).rejects.toMatchObject({ status: 503 });
  });
});

describe("the journal", () => {
  it("shows operation, token, body and answer without secrets, and what changed", async () => {
    const zone = await zoneOf(edge);
    await clientOf(edge).zones.get({ zone_id: zone.id });
    const token = await edge.tokenWith(["Zone Read"]);
    const calls = (await edge.calls.all()).filter(({ operation }) => operation?.includes("group") === false);
    expect(calls.map(({ operation, changed }) => [operation, changed.length > 0])).toMatchObject([
      ["zone_create", true],
      ["zone_get", false],
      ["user_token_create", true],
    ]);
    expect(calls[0]).toMatchObject({
      method: "POST",
      path: "/zones",
      body: { name: "shop.example" },
      response: { result: { id: zone.id } },
      token: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
    });
    const shown = JSON.stringify(calls);
    expect([shown.includes(token), shown.includes(edge.token), shown.includes("REDACTED")]).toEqual([
      false,
      false,
      true,
    ]);
    expect(await edge.calls.har()).toMatchObject({
      log: { version: "1.2", entries: { length: expect.any(Number) as number } },
    });
  });

  it("waits for a call, and names calls of no operation", async () => {
    const waiting = edge.calls.waitFor({ operation: "zone_create" });
    await zoneOf(edge);
    expect((await waiting).status).toBe(200);
    await expect(edge.calls.waitFor({ operation: "zone_delete" }, 50)).rejects.toThrow("zone_delete");
    const strict = await startSelvedge({ onUnknown: "fail" });
    await fetch(`${strict.urls.api}/zonez`, { headers: { authorization: `Bearer ${strict.token}` } });
    await expect(strict.close()).rejects.toThrow("Calls of no operation: GET /zonez");
  });
});

describe("the control surface", () => {
  it("needs its own secret, and is marked everywhere", async () => {
    const asked = (token: string): Promise<Response> =>
      fetch(`${edge.control.url}/clock`, { headers: { authorization: `Bearer ${token}` } });
    expect((await asked(edge.token)).status).toBe(401);
    const answer = await asked(edge.control.token);
    expect([answer.status, answer.headers.get("selvedge-test")]).toEqual([200, "on"]);
    const ready = await fetch(new URL("/readyz", edge.urls.api));
    expect([await ready.json(), ready.headers.get("selvedge-test")]).toEqual([
      { status: "ok", mode: "test" },
      "on",
    ]);
  });

  it("is an ordinary 404 without --test-api", async () => {
    const { url } = edge.control;
    const other = await fetch(`${edge.urls.api}/no/such/path`);
    const server = await startTestServer();
    const path = new URL(url).pathname;
    const answer = await fetch(new URL(path, server.ready.api));
    expect([answer.status, answer.headers.get("selvedge-test")]).toEqual([other.status, null]);
    await server.close(0);
  });

  const made = join(temporaryFolder(), "made");
  mkdirSync(made);
  writeFileSync(join(made, "selvedge.db"), "");
  it.each<[string, string[], Record<string, string>]>([
    ["a listener that other machines can reach", ["--ephemeral", "--api-listen=0.0.0.0:0"], {}],
    ["--database-url", ["--ephemeral", "--database-url=postgres://localhost/x"], {}],
    ["--acme-directory", ["--ephemeral", "--acme-directory=https://localhost/"], {}],
    ["NODE_ENV=production", ["--ephemeral"], { NODE_ENV: "production" }],
    ["for the data folder", [`--data-dir=${made}`], {}],
  ])("does not start with %s", (reason, settings, environment) => {
    const listeners = ["--api-listen", "--edge-listen", "--dns-listen"].map((flag) => `${flag}=127.0.0.1:0`);
    const started = spawnSync(
      process.execPath,
      ["bin/selvedge.js", "serve", "--test-api", ...listeners, ...settings],
      { env: { ...process.env, ...environment }, encoding: "utf8", timeout: 120_000 },
    );
    expect(started.status).toBe(1);
    expect(started.stderr).toContain("Expected no --test-api");
    expect(started.stderr).toContain(reason);
    expect(existsSync(join(made, "made-for-tests"))).toBe(false);
  });
});
