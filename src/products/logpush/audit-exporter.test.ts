import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Accounts } from "../../control/accounts/accounts.ts";
import { firstIdAt } from "../../control/audit/entry-id.ts";
import { entryOfSystem } from "../../control/audit/entry.ts";
import { insert, type AuditEntry } from "../../control/audit/store.ts";
import { openStorage, type Storage } from "../../platform/storage/storage.ts";
import { setTime } from "../../platform/timers/clock.ts";
import { AuditExporter } from "./audit-exporter.ts";
import { Collector } from "./collection/collector.ts";
import { auditLogs } from "./data-sets/audit-logs.ts";
import { auditLogsV2 } from "./data-sets/audit-logs-v2.ts";
import { dataSets } from "./data-sets/data-sets.ts";
import { jobInput } from "./job-input.ts";
import { LogpushJobs } from "./jobs.ts";
import { LogSpool } from "./spool/spool.ts";

let folder: string;
let storage: Storage;
let jobs: LogpushJobs;
let spool: LogSpool;
let exporter: AuditExporter;
let collectors: { audit_logs: Collector<AuditEntry>; audit_logs_v2: Collector<AuditEntry> };
let accountId: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-feed-"));
  storage = await openStorage("sqlite::memory:");
  jobs = new LogpushJobs(storage);
  spool = new LogSpool(folder, 100, pino({ enabled: false }));
  const options = { spool, intervalMs: 60_000 };
  collectors = {
    audit_logs: new Collector({ dataSet: auditLogs, ...options }),
    audit_logs_v2: new Collector({ dataSet: auditLogsV2, ...options }),
  };
  jobs.onActive((active) => {
    for (const name of ["audit_logs", "audit_logs_v2"] as const)
      collectors[name].use(active.filter(({ dataSet }) => dataSet === name));
  });
  exporter = new AuditExporter(storage, jobs, spool, Object.values(collectors));
  const accounts = new Accounts(storage);
  const user = await accounts.createUser({ email: "owner@example.com", apiKeyHash: null });
  accountId = (await accounts.create({ name: "A", type: "enterprise", ownerUserId: user.id })).id;
});
afterEach(async () => {
  setTime();
  for (const collector of Object.values(collectors)) await collector.close();
  await storage.close();
  rmSync(folder, { recursive: true });
});

async function newJob(dataset: string, fields: string[]): Promise<void> {
  const body = { destination_conf: "https://logs.example", dataset, enabled: true };
  const input = jobInput({ ...body, output_options: { field_names: fields } }, "account", dataSets);
  await jobs.create({ accountId, zoneId: undefined }, input);
}

async function addEntry(id: string): Promise<void> {
  const directory = {
    zones: { find: () => undefined },
    accounts: { find: () => ({ id: accountId, name: "A" }), findUser: () => undefined },
  } as never;
  const entry = entryOfSystem([{ kind: "dns_record", id, parentId: accountId }], directory);
  await storage.write(async (trx) => insert(trx, entry));
}

/** The records in the spools. */
async function spooled(): Promise<string[]> {
  const lines: string[] = [];
  for (const collector of Object.values(collectors)) await collector.seal();
  for (const owner of await spool.owners())
    for (const { path } of await spool.ready(owner))
      lines.push(...readFileSync(path, "utf8").split("\n").slice(0, -1));
  return lines.toSorted();
}

it("reads the log once for all jobs of an account, in both versions", async () => {
  for (let i = 0; i < 4; i++) await newJob("audit_logs", ["ResourceID"]);
  await newJob("audit_logs_v2", ["ActionTimestamp", "ResourceID", "Raw", "ActorType"]);
  await addEntry("first");
  const laterMs = Date.now() + 60_000;
  setTime(() => laterMs);
  await exporter.tick();
  const timestamp: unknown = expect.any(Number);
  const [v2, ...v1] = (await spooled()).map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(v1).toEqual(Array.from({ length: 4 }, () => ({ ResourceID: "first" })));
  expect(v2).toEqual({ ActionTimestamp: timestamp, ResourceID: "first", Raw: null, ActorType: "system" });
  await addEntry("second");
  setTime(() => laterMs + 60_000);
  const select = vi.spyOn(storage.read, "selectFrom");
  await exporter.tick();
  expect(select.mock.calls.filter(([table]) => (table as unknown) === "audit_logs").length).toBe(1);
  select.mockRestore();
  expect((await spooled()).filter((line) => line.includes("second")).length).toBe(5);
});

it("waits with the entries of a job that has no room, and goes on for the others", async () => {
  await newJob("audit_logs", ["ResourceID"]);
  await newJob("audit_logs", ["ResourceID"]);
  const [full] = jobs.active;
  await addEntry("kept");
  const laterMs = Date.now() + 3_600_000; // ids of entries never go back
  setTime(() => laterMs);
  const hasRoom = vi.spyOn(spool, "hasRoom").mockImplementation(({ id }) => id !== full!.id);
  await exporter.tick();
  expect(await spooled()).toEqual(['{"ResourceID":"kept"}']);
  hasRoom.mockRestore();
  await exporter.tick();
  expect(await spooled()).toEqual(['{"ResourceID":"kept"}', '{"ResourceID":"kept"}']);
});

it("goes on for the other jobs when one cannot write", async () => {
  await newJob("audit_logs", ["ResourceID"]);
  await newJob("audit_logs", ["ResourceID"]);
  const [failing] = jobs.active;
  await jobs.setCursor([failing!], firstIdAt(0)); // at another position, it is read first
  await addEntry("kept");
  const laterMs = Date.now() + 7_200_000; // ids of entries never go back
  setTime(() => laterMs);
  const [first] = collectors.audit_logs.receivers;
  expect(first!.job.id).toBe(failing!.id);
  await first!.writer.close();
  await expect(exporter.tick()).rejects.toThrow("Expected an open spool");
  expect(await spooled()).toEqual(['{"ResourceID":"kept"}']);
});
