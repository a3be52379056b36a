import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, it } from "vitest";
import { recordsOf, startLogReceiver, type LogReceiver } from "../../../test/helpers/log-receiver.ts";
import { Accounts } from "../../control/accounts/accounts.ts";
import { AddressPolicy } from "../../edge/origin/address-policy.ts";
import { openStorage, type Storage } from "../../platform/storage/storage.ts";
import { dataSets } from "./data-sets/data-sets.ts";
import { LogSender } from "./destination/send.ts";
import type { LogpushJob } from "./job.ts";
import { jobInput } from "./job-input.ts";
import { LogpushJobs } from "./jobs.ts";
import { LogSpool } from "./spool/spool.ts";
import { Uploader } from "./uploader.ts";

const logger = pino({ enabled: false });
const limits = { bytesMax: 1000, recordsMax: 1000, intervalMs: 60_000, delimiter: "" };

let folder: string;
let storage: Storage;
let jobs: LogpushJobs;
let spool: LogSpool;
let destination: LogReceiver;
let silent: LogReceiver;
let uploader: Uploader;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-uploader-"));
  storage = await openStorage("sqlite::memory:");
  jobs = new LogpushJobs(storage);
  await jobs.load();
  spool = new LogSpool(folder, 100, logger);
  destination = await startLogReceiver();
  silent = await startLogReceiver();
  silent.behaviour = "hang";
  const sender = new LogSender({
    policy: new AddressPolicy("all"),
    lookUp: async () => ["127.0.0.1"],
    timeoutMs: 60_000,
    ca: [destination, silent].map(({ caFile }) => readFileSync(caFile, "utf8")),
    localAddress: undefined,
  });
  uploader = new Uploader({ jobs, spool, sender, logger, disableAfterMs: 3_600_000 });
});
afterEach(async () => {
  await uploader.stop(0);
  await destination.close();
  await silent.close();
  await storage.close();
  rmSync(folder, { recursive: true });
});

/** Makes an account with jobs for a destination. */
async function newJobs(name: string, count: number, { url }: LogReceiver): Promise<LogpushJob[]> {
  const accounts = new Accounts(storage);
  const user = await accounts.createUser({ email: `${name}@example.com`, apiKeyHash: null });
  const { id } = await accounts.create({ name, type: "enterprise", ownerUserId: user.id });
  const input = jobInput(
    { destination_conf: url, dataset: "audit_logs", enabled: true },
    "account",
    dataSets,
  );
  const made: LogpushJob[] = [];
  for (let i = 0; i < count; i++) made.push(await jobs.create({ accountId: id, zoneId: undefined }, input));
  return made;
}

async function fill(filled: readonly LogpushJob[]): Promise<void> {
  for (const job of filled) {
    const writer = spool.writer(job, "audit_logs", limits);
    await writer.write([`{"job":${job.id}}\n`]);
    await writer.seal();
  }
}

it("uploads an account's events while the destinations of other accounts never respond", async () => {
  const slow = [...(await newJobs("slow", 10, silent)), ...(await newJobs("slower", 10, silent))];
  const [own] = await newJobs("own", 1, destination);
  await fill([...slow, own!]);
  await uploader.tick();
  await expect.poll(() => recordsOf(destination)).toEqual([{ job: own!.id }]);
  await expect.poll(() => silent.attempts).toBe(8);
});

it("lets the jobs that have waited longest go first", async () => {
  const all: LogpushJob[] = [];
  for (const name of ["a", "b", "c", "d", "e"]) all.push(...(await newJobs(name, 4, destination)));
  for (let round = 1; round <= 2; round++) {
    await fill(all);
    await uploader.tick();
    await expect.poll(() => destination.uploads.length).toBeGreaterThanOrEqual(16 * round);
  }
  await expect
    .poll(() => new Set(recordsOf(destination).map(({ job }) => job)))
    .toEqual(new Set(all.map(({ id }) => id)));
});

it("says in a job that its events are dropped although its uploads succeed, until one succeeds later", async () => {
  const [dropping, silentOne] = await newJobs("dropping", 2, destination);
  const messageOf = async ({ id, accountId }: LogpushJob): Promise<string | null> =>
    (await jobs.find({ accountId, zoneId: undefined }, String(id))).errorMessage;
  const record = "x".repeat(1024 * 1024);
  const writer = spool.writer(dropping!, "audit_logs", { ...limits, bytesMax: Infinity });
  while (spool.hasRoom(dropping!)) await writer.write([record]);
  writer.add(record);
  await uploader.tidy();
  expect(await messageOf(dropping!)).toBe("The spool of the job is full, and new events are dropped.");
  expect(await messageOf(silentOne!)).toBe(null);
  expect([...spool.dropped.counts()]).toEqual([
    { accountId: dropping!.accountId, dataSet: "audit_logs", count: 1 },
  ]);
  await writer.seal();
  await uploader.tick();
  await expect.poll(async () => messageOf(dropping!)).toBe(null);
  await uploader.tidy();
  expect(await messageOf(dropping!)).toBe(null);
});
