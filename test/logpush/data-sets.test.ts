import { Resolver } from "node:dns/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bucketDestination, filesIn, recordsIn } from "../helpers/logpush-bucket.ts";
import { startS3, type S3Double } from "../helpers/s3.ts";
import { startHosting } from "../runtime/platform.ts";
import { startTestServer } from "../helpers/server.ts";

/** Queries of DNS and runs of scripts arrive in a bucket, whose signatures are verified. */
let s3: S3Double;
const settings = { privateNetworks: "all", logpushIntervalSeconds: 1 };

beforeAll(async () => {
  s3 = await startS3();
});
afterAll(() => s3.stop());

it.each([0, 1])("pushes the queries for names of the zone, with %i threads", async (dnsThreads) => {
  const server = await startTestServer({ ...settings, dnsThreads });
  s3.buckets.create("bucket");
  const [zone_id] = await Promise.all([server.newZone("asked.example"), server.newZone("other.example")]);
  const job = (await server.client.logpush.jobs.create({
    zone_id,
    dataset: "dns_logs",
    enabled: true,
    destination_conf: bucketDestination(s3),
    output_options: { timestamp_format: "unix" },
  }))!;
  const resolver = new Resolver();
  resolver.setServers([server.ready.dns]);
  await resolver.resolveSoa("asked.example");
  await resolver.resolveSoa("other.example");
  await expect(resolver.resolve4("No.asked.example")).rejects.toThrow(/ENOTFOUND/);
  const queried = { ColoCode: "DEV", SourceIP: "127.0.0.1", Timestamp: expect.any(Number) };
  await expect
    .poll(() => recordsIn(s3))
    .toEqual([
      { ...queried, QueryName: "asked.example", QueryType: 6, ResponseCode: 0 },
      { ...queried, QueryName: "no.asked.example", QueryType: 1, ResponseCode: 3 },
    ]);
  expect(filesIn(s3)[0]).toMatch(/^logs\/\d{8}\/\d{8}T\d{6}Z_\d{8}T\d{6}Z_[\da-f]{16}\.log\.gz$/);
  await server.client.logpush.jobs.delete(job.id!, { zone_id });
  await server.close(1000);
});

it("pushes the runs of scripts", async () => {
  const server = await startHosting(settings);
  s3.buckets.create("bucket");
  const { account_id } = server.ready;
  await server.client.logpush.jobs.create({
    account_id,
    dataset: "workers_trace_events",
    enabled: true,
    destination_conf: bucketDestination(s3, ""),
  });
  await server.deploy(
    "told",
    `export default { fetch(request) {
      console.log("seen", { a: 1 });
      if (request.url.includes("bad")) throw new TypeError("wrong");
      return new Response("hello");
    } }`,
  );
  const headers = { authorization: "hidden" };
  expect((await server.ask("told", "/good?token=hidden", { headers })).body).toBe("hello");
  expect((await server.ask("told", "/bad")).status).toBe(500);
  await expect.poll(() => recordsIn(s3).length).toBe(2);
  const [good, bad] = recordsIn(s3);
  expect(good).toMatchObject({
    DispatchNamespace: null,
    Event: {
      Request: { Method: "GET", URL: expect.stringContaining("/good?token=REDACTED") },
      Response: { Status: 200 },
    },
    EventType: "fetch",
    Exceptions: [],
    Logs: [{ Level: "log", Message: ["seen", { a: 1 }] }],
    Outcome: "ok",
    ScriptName: "told",
    ScriptVersion: { ID: expect.any(String) },
  });
  expect(JSON.stringify(good)).not.toContain("hidden");
  expect(bad).toMatchObject({ Outcome: "exception", Exceptions: [{ Name: "TypeError", Message: "wrong" }] });
  await server.close(1000);
});
