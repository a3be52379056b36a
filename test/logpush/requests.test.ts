import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { recordsOf, startLogReceiver, type LogReceiver } from "../helpers/log-receiver.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";

/** Requests at the edge arrive at an HTTPS destination, which fails in many ways meanwhile. */
let server: TestServer;
let origin: Server;
let receiver: LogReceiver;
let zone_id: string;
const host = "www.pushed.example";

beforeAll(async () => {
  receiver = await startLogReceiver();
  server = await startTestServer({
    privateNetworks: "all",
    originCa: [receiver.caFile],
    logpushIntervalSeconds: 1,
    logpushTimeoutSeconds: 4,
    logLevel: "fatal",
  });
  origin = createServer((_request, response) => response.end("hello"));
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  zone_id = await server.newZone("pushed.example");
  const { client } = server;
  await client.dns.records.create({
    zone_id,
    type: "A",
    name: "www",
    content: "127.0.0.1",
    ttl: 1,
    proxied: true,
  });
  const { port } = origin.address() as AddressInfo;
  await client.rulesets.phases.update("http_request_origin", {
    zone_id,
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port } } }],
  });
});
afterAll(async () => {
  await server.close(1000);
  origin.close();
  await receiver.close();
});
beforeEach(() => {
  receiver.behaviour = 200;
  receiver.uploads.length = 0;
});

async function makeJob(more: object = {}): Promise<number> {
  const job = await server.client.logpush.jobs.create({
    zone_id,
    destination_conf: `${receiver.url}?header_Authorization=Bearer%20marked-secret&kept=1`,
    dataset: "http_requests",
    enabled: true,
    ...more,
  });
  return job!.id!;
}
const deleteJob = (id: number) => server.client.logpush.jobs.delete(id, { zone_id });
const see = (path: string) => requestEdge(server.ready.edge, host, path);
const pathsOf = (): unknown[] => recordsOf(receiver).map((record) => record["ClientRequestPath"]);
const arrived = (count: number) => expect.poll(() => recordsOf(receiver).length).toBe(count);

it("pushes the requests of the zone, with the chosen fields", async () => {
  const id = await makeJob({
    output_options: {
      field_names: [
        "ClientRequestPath",
        "EdgeResponseStatus",
        "ZoneName",
        "EdgeStartTimestamp",
        "WorkerStatus",
      ],
      timestamp_format: "rfc3339ns",
    },
  });
  await see("/first?token=hidden");
  await requestEdge(server.ready.edge, "unknown.example", "/not-this-zone");
  await arrived(1);
  const [upload] = receiver.uploads;
  expect(upload!.path).toBe("/logs?kept=1");
  expect(upload!.headers).toMatchObject({
    authorization: "Bearer marked-secret",
    "content-encoding": "gzip",
    "content-type": "application/x-ndjson",
  });
  expect(upload!.text).toMatch(
    /^\{"ClientRequestPath":"\/first","EdgeResponseStatus":200,"ZoneName":"pushed.example","EdgeStartTimestamp":"[\dT:-]{19}\.\d{9}Z","WorkerStatus":null\}\n$/,
  );
  await expect
    .poll(() => server.client.logpush.jobs.get(id, { zone_id }))
    .toMatchObject({
      last_complete: expect.stringMatching(/^\d{4}-/),
      last_error: null,
      error_message: null,
    });
  await deleteJob(id);
  await see("/after-deletion");
  expect(server.services.edgeLog.isOn).toBe(false);
});

it("takes what its filter takes, in the form that it wants", async () => {
  const id = await makeJob({
    filter: JSON.stringify({
      where: { and: [{ key: "ClientRequestPath", operator: "startsWith", value: "/a" }] },
    }),
    output_options: {
      field_names: ["ClientRequestUserAgent"],
      batch_prefix: "[",
      batch_suffix: "]\n",
      record_suffix: "}",
      record_delimiter: ",",
      "CVE-2021-44228": true,
    },
  });
  for (const path of ["/a1", "/b1", "/a2"])
    await requestEdge(server.ready.edge, host, path, { "user-agent": [path, "$", "{x}"].join("") });
  await expect
    .poll(() => receiver.uploads.map(({ text }) => text).join(""))
    .toBe('[{"ClientRequestUserAgent":"/a1x{x}"},{"ClientRequestUserAgent":"/a2x{x}"}]\n');
  await deleteJob(id);
});

it.each([
  [500, "it answered with status 500"],
  [302, "it answered with a redirect (302), which uploads do not follow"],
  ["hang", "no answer within 4 seconds"],
  ["reset", "it ended the connection"],
] as const)("repeats uploads to a destination that answers %s", async (behaviour, why) => {
  const id = await makeJob();
  receiver.behaviour = behaviour;
  await see("/kept");
  await expect
    .poll(() => server.client.logpush.jobs.get(id, { zone_id }))
    .toMatchObject({ error_message: `The last upload failed: ${why}.`, last_error: expect.any(String) });
  expect(receiver.uploads).toEqual([]);
  receiver.behaviour = 200;
  await arrived(1);
  expect(pathsOf()).toEqual(["/kept"]);
  await expect
    .poll(() => server.client.logpush.jobs.get(id, { zone_id }))
    .toMatchObject({ error_message: null, last_error: null });
  await deleteJob(id);
});

it("reads little of an endless answer", async () => {
  const id = await makeJob();
  receiver.behaviour = "endless";
  await see("/endless");
  await arrived(1);
  await expect
    .poll(() => server.client.logpush.jobs.get(id, { zone_id }))
    .toMatchObject({ last_complete: expect.any(String), error_message: null });
  await deleteJob(id);
});

it("pushes the audit log of the account, from the job on", async () => {
  const { account_id } = server.ready;
  const job = (await server.client.logpush.jobs.create({
    account_id,
    destination_conf: receiver.url,
    dataset: "audit_logs",
    enabled: true,
    filter: '{"where":{"key":"ActionType","operator":"startsWith","value":"dns_record"}}',
  }))!;
  const record = await server.client.dns.records.create({
    zone_id,
    type: "TXT",
    name: "audited",
    content: '"x"',
    ttl: 300,
  });
  await expect
    .poll(() => recordsOf(receiver))
    .toMatchObject([
      { ActionType: "dns_record_create", ActionResult: true, ResourceID: record.id, OwnerID: account_id },
    ]);
  await server.client.logpush.jobs.delete(job.id!, { account_id });
});
