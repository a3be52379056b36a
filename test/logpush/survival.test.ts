import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { startCores } from "../cores/cores.ts";
import { bucketDestination, filesIn, recordsIn } from "../helpers/logpush-bucket.ts";
import { serve, temporaryFolder } from "../helpers/process.ts";
import { startS3, type S3Double } from "../helpers/s3.ts";
import { startTestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";

/** Events that are in the spool arrive, also if processes are killed. */
let s3: S3Double;
const settings = ["--private-networks", "all", "--logpush-interval-seconds", "1"];

beforeEach(async () => {
  s3 = await startS3();
});
afterEach(() => s3.stop());

/** The records in the files of a spool. */
const spooled = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(open|ready)$/.test(file))
    .flatMap((file) => readFileSync(join(folder, file), "utf8").split("\n").slice(0, -1));
const pathsIn = (): string[] => recordsIn(s3).map((record) => String(record["ClientRequestPath"]));
const jobFor = (destination_conf: string) => ({
  destination_conf,
  dataset: "http_requests",
  enabled: true,
  output_options: { field_names: ["ClientRequestPath"] },
});

it("kill -9 between the spool and the upload loses nothing", async () => {
  const data = temporaryFolder();
  const start = () => serve(["--data-dir", data, ...settings], { SELVEDGE_API_TOKEN: "killed-logpush" });
  const first = await start();
  onTestFinished(() => void first.process.kill("SIGKILL"));
  const call = async (path: string, body: object): Promise<{ id: string }> => {
    const response = await fetch(`${first.ready.api}${path}`, {
      method: "POST",
      headers: { authorization: "Bearer killed-logpush", "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(200);
    return ((await response.json()) as { result: { id: string } }).result;
  };
  const { id: zone } = await call("/zones", {
    name: "killed.example",
    account: { id: first.ready.account_id },
  });
  await call(`/zones/${zone}/logpush/jobs`, jobFor(bucketDestination(s3)));
  await s3.stop();
  const paths = Array.from({ length: 20 }, (_, index) => `/${index}`);
  for (const path of paths) await requestEdge(first.ready.edge, "killed.example", path);
  await expect.poll(() => spooled(join(data, "logpush")).length).toBe(paths.length);
  first.process.kill("SIGKILL");
  await first.exited;
  await s3.start();
  const second = await start();
  onTestFinished(() => void second.process.kill("SIGKILL"));
  await expect.poll(() => pathsIn().toSorted()).toEqual(paths.toSorted());
  await expect.poll(() => spooled(join(data, "logpush"))).toEqual([]);
});

it("uploads what edge processes have seen, also those that were killed", async () => {
  // They would upload nothing by themselves.
  await using cores = await startCores(2, ["--private-networks", "all", "--logpush-interval-seconds", "300"]);
  await cores.addName("www");
  const job = jobFor(bucketDestination(s3));
  expect((await cores.call("POST", `/zones/${cores.zoneId}/logpush/jobs`, job)).status).toBe(200);
  const paths = Array.from({ length: 40 }, (_, index) => `/${index}`);
  for (const path of paths) await requestEdge(cores.server.ready.edge, "www.cores.example", path);
  await expect.poll(() => spooled(join(cores.data, "logpush")).length).toBe(paths.length);
  for (const pid of cores.pids("edge")) process.kill(pid, "SIGKILL");
  await expect.poll(() => pathsIn().toSorted(), { timeout: 40_000 }).toEqual(paths.toSorted());
  expect(filesIn(s3).length).toBeLessThanOrEqual(2);
});

it("drops and counts events when the spool is full, and says so", async () => {
  const server = await startTestServer({
    privateNetworks: "all",
    logpushIntervalSeconds: 1,
    logpushSpoolMegabytes: 1,
    logLevel: "fatal",
  });
  onTestFinished(() => server.close(1000));
  const zone_id = await server.newZone("full.example");
  const job = (await server.client.logpush.jobs.create({
    zone_id,
    ...jobFor(bucketDestination(s3)),
  } as never))!;
  s3.disturb = () => ({ fault: "slowDown" });
  const { logpushRequests, logpushSpool } = server.services;
  const record = { view: { path: `/${"x".repeat(1000)}` } } as never;
  const dropped = (): number => [...logpushSpool.dropped.counts()].reduce((sum, { count }) => sum + count, 0);
  const offer = async (): Promise<number> => {
    for (let i = 0; i < 100; i++) logpushRequests.take(zone_id, record);
    for (const { writer } of logpushRequests.receivers) await writer.flush();
    return dropped();
  };
  await expect.poll(offer).toBeGreaterThan(100);
  await expect
    .poll(() => server.client.logpush.jobs.get(job.id!, { zone_id }))
    .toMatchObject({
      error_message:
        "The last upload failed: it answered with status 503 (SlowDown). The spool of the job is full, and new events are dropped.",
    });
  await logpushSpool.measure();
  expect(logpushSpool.bytes).toBeLessThan(2 * 1024 * 1024);
  s3.disturb = () => ({});
  await expect.poll(() => logpushSpool.measure().then(() => logpushSpool.bytes)).toBe(0);
  const before = dropped();
  expect(await offer()).toBe(before);
});

it("a stop uploads what waits", async () => {
  const server = await startTestServer({ privateNetworks: "all", logpushIntervalSeconds: 300 });
  const zone_id = await server.newZone("stopped.example");
  await server.client.logpush.jobs.create({ zone_id, ...jobFor(bucketDestination(s3)) } as never);
  await requestEdge(server.ready.edge, "stopped.example", "/last");
  await server.close(10_000);
  expect(pathsIn()).toEqual(["/last"]);
});
