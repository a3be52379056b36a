import type { Cloudflare } from "cloudflare";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operations } from "../../src/capabilities.ts";
import { logpushOperations } from "../../src/products/logpush/api.ts";
import { startLogReceiver, type LogReceiver } from "../helpers/log-receiver.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { s3Credentials, startS3, type S3Double } from "../helpers/s3.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client manages jobs, for zones and for accounts. test/logpush tests what they push. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let receiver: LogReceiver;
let s3: S3Double;
let zone_id: string;
let account_id: string;
let bucket: string;

beforeAll(async () => {
  receiver = await startLogReceiver();
  s3 = await startS3();
  const { accessKeyId, secretAccessKey } = s3Credentials;
  bucket =
    `s3://bucket/logs/{DATE}?region=us-west-2&access-key-id=${accessKeyId}` +
    `&secret-access-key=${encodeURIComponent(secretAccessKey)}&endpoint=${encodeURIComponent(s3.endpoint)}`;
  server = await startTestServer({ privateNetworks: "all", originCa: [receiver.caFile] });
  ({ client, called } = recordingClient(server, operations));
  ({ account_id } = server.ready);
  zone_id = await server.newZone("logs.example");
});
afterAll(async () => {
  await server.close(1000);
  await receiver.close();
  await s3.stop();
});

const ownerOf = (scope: "zone" | "account") => (scope === "zone" ? { zone_id } : { account_id });

it("creates, changes, lists and deletes a job", async () => {
  const { jobs, datasets } = client.logpush;
  const made = (await jobs.create({
    zone_id,
    destination_conf: `${receiver.url}?header_Authorization=Bearer%20top-secret`,
    dataset: "http_requests",
    name: "logs.example",
    enabled: true,
    filter: '{"where":{"key":"EdgeResponseStatus","operator":"geq","value":"500"}}',
    max_upload_bytes: 5_000_000,
    max_upload_records: 1000,
    max_upload_interval_seconds: 30,
    output_options: { field_names: ["RayID", "ClientIP"], timestamp_format: "rfc3339", sample_rate: 0.5 },
  }))!;
  expect(made).toMatchObject({
    dataset: "http_requests",
    destination_conf: `${receiver.url}?header_Authorization=REDACTED`,
    enabled: true,
    error_message: null,
    last_complete: null,
    last_error: null,
    max_upload_records: 1000,
    output_options: { field_names: ["RayID", "ClientIP"], output_type: "ndjson", sample_rate: 0.5 },
  });
  const id = made.id!;
  expect(await jobs.get(id, { zone_id })).toEqual(made);
  expect(await Array.fromAsync(jobs.list({ zone_id }))).toEqual([made]);
  expect(await Array.fromAsync(datasets.jobs.get("http_requests", { zone_id }))).toEqual([made]);
  // A client that sends back what it was shown keeps the credentials.
  const changed = (await jobs.update(id, { ...made, zone_id, enabled: false }))!;
  expect(changed).toEqual({ ...made, enabled: false });
  expect(
    (await server.services.logpushJobs.find({ accountId: account_id, zoneId: zone_id }, String(id)))
      .destination,
  ).toContain("top-secret");
  expect(await jobs.update(id, { zone_id, name: null, filter: null, max_upload_bytes: 0 })).toMatchObject({
    name: "",
    filter: null,
    max_upload_bytes: 0,
    max_upload_records: 1000,
  });
  expect(await jobs.delete(id, { zone_id })).toEqual({ id });
  await expect(jobs.get(id, { zone_id })).rejects.toMatchObject({ status: 404 });
});

describe.each(["zone", "account"] as const)("of the %s", (scope) => {
  it("shows jobs and fields of data sets, and refuses others by name", async () => {
    const owner = ownerOf(scope);
    const { datasets, jobs } = client.logpush;
    const own = { zone: "http_requests", account: "audit_logs" } as const;
    const fields = {
      zone: { RayID: "Id of the request; string" },
      account: { ID: "Id of the entry; string" },
    };
    expect(await datasets.fields.get(own[scope], owner)).toMatchObject(fields[scope]);
    expect(await Array.fromAsync(datasets.jobs.get(own[scope], owner))).toEqual([]);
    expect(await Array.fromAsync(jobs.list(owner))).toEqual([]);
    await expect(
      jobs.create({ ...owner, destination_conf: receiver.url, dataset: "gateway_dns" }),
    ).rejects.toThrow(/Expected a data set of the .* but received .*gateway_dns/);
    await expect(jobs.get(12, owner)).rejects.toThrow(/does not exist/);
    await expect(jobs.update(12, owner)).rejects.toThrow(/does not exist/);
    await expect(jobs.delete(12, owner)).rejects.toThrow(/does not exist/);
  });

  it("proves the ownership of a bucket", async () => {
    const owner = ownerOf(scope);
    const { ownership } = client.logpush;
    const written = (await ownership.create({ ...owner, destination_conf: bucket }))!;
    expect(written).toMatchObject({ valid: true, message: "" });
    expect(written.filename).toMatch(/^logs\/\d{8}\/ownership-challenge-[\da-f]{8}\.txt$/);
    const token = s3.buckets.objects().get(written.filename!)!.bytes.toString();
    const validate = (ownership_challenge: string) =>
      ownership.validate({ ...owner, destination_conf: bucket, ownership_challenge });
    expect(await validate(token)).toEqual({ valid: true });
    expect(await validate("another")).toEqual({ valid: false });
    await expect(ownership.create({ ...owner, destination_conf: receiver.url })).rejects.toThrow(
      /needs no proof of ownership/,
    );
  });

  it("validates destinations and options", async () => {
    const owner = ownerOf(scope);
    const { validate } = client.logpush;
    const destination = (destination_conf: string) => validate.destination({ ...owner, destination_conf });
    expect(await destination(receiver.url)).toEqual({ valid: true, message: "" });
    expect(await destination(bucket)).toEqual({ valid: true, message: "" });
    expect(await destination(bucket.replace("of%20the", "of%20no"))).toEqual({
      valid: false,
      message: "it answered with status 403 (SignatureDoesNotMatch)",
    });
    expect(await destination("r2://bucket")).toMatchObject({ valid: false });
    expect(await validate.destinationExists({ ...owner, destination_conf: bucket })).toEqual({
      exists: false,
    });
    expect(
      await validate.origin({
        ...owner,
        logpull_options: `fields=${scope === "zone" ? "RayID" : "ID"}&timestamps=rfc3339&CVE-2021-44228=true`,
      }),
    ).toEqual({ valid: true, message: "" });
    expect(await validate.origin({ ...owner, logpull_options: "fields=Nothing" })).toMatchObject({
      valid: false,
    });
  });
});

it("refuses what is not supported, by name", async () => {
  const refusal = async (body: object): Promise<string> => {
    const answer = await server.call("POST", `/zones/${zone_id}/logpush/jobs`, {
      destination_conf: receiver.url,
      ...body,
    });
    expect(answer.status).toBe(400);
    return `${answer.body.errors[0]!.source?.pointer} ${answer.body.errors[0]!.message}`;
  };
  for (const [body, message] of [
    [{ kind: "edge" }, /^\/body\/kind .*not supported/],
    [{ output_options: { output_type: "csv" } }, /^\/body\/output_options\/output_type .*not supported/],
    [{ output_options: { record_template: "{{.RayID}}" } }, /record_template is not supported/],
    [{ output_options: { merge_subrequests: true } }, /merge_subrequests is not supported/],
    [{ output_options: { field_names: ["RayId"] } }, /field_names .*Expected fields of the data set/],
    [{ filter_attack_traffic: true }, /filter_attack_traffic is not supported/],
    [{ max_upload_bytes: 5 }, /max_upload_bytes .*0, or a number from 5000000/],
    [{ filter: '{"where":{"key":"RayId","operator":"eq","value":"1"}}' }, /^\/body\/filter /],
    [{ logpull_options: "start=1" }, /logpull_options/],
    [{ dataset: "workers_trace_events" }, /Expected a data set of the zone/],
    [{ ownership_challenge: "guessed" }, /ownership_challenge/],
    [{ destination_conf: "r2://bucket/path" }, /destination_conf .*"r2", which is not supported/],
    [{ destination_conf: "s3://bucket/path?region=x" }, /Expected access-key-id and secret-access-key/],
    [
      { destination_conf: bucket.replace("region", "profile") },
      /Expected the parameters .* received "profile"/,
    ],
    [{ destination_conf: `${receiver.url}?header_Host=x` }, /Expected another header than Host/],
  ] as const)
    expect(await refusal(body)).toMatch(message);
  receiver.behaviour = 302;
  expect(await refusal({})).toMatch(
    /The destination does not accept uploads: it answered with a redirect \(302\)/,
  );
  receiver.behaviour = 200;
  expect(await refusal({ destination_conf: receiver.url.replace("logs.", "other.") })).toMatch(
    /its certificate is for another name/,
  );
});

it("limits the jobs of a zone", async () => {
  const zone = await server.newZone("many.example");
  const create = async () =>
    client.logpush.jobs.create({ zone_id: zone, destination_conf: bucket, dataset: "http_requests" });
  for (let i = 0; i < 10; i++) await create();
  await expect(create()).rejects.toThrow(/Expected at most 10 Logpush jobs/);
  expect(
    await client.logpush.validate.destinationExists({ zone_id: zone, destination_conf: bucket }),
  ).toEqual({
    exists: true,
  });
});

it("every operation has been called", () => {
  expect(logpushOperations.map(({ id }) => id).filter((id) => !called.has(id))).toEqual([]);
});
