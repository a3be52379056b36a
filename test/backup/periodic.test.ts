import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { backupAt } from "../helpers/backup-at.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { verify } from "../../src/platform/storage/backup/verify.ts";

/** A node that makes backups of itself. */
let server: TestServer | undefined;
afterEach(async () => server?.close(0));

const settingsOf = (folder: string): Record<string, unknown> => ({
  ephemeral: false,
  dataDir: join(folder, "data"),
  backupFolder: join(folder, "backups"),
  backupEvery: "1s",
  backupKeep: 2,
  metricsListen: "127.0.0.1:0",
});

it("makes backups, keeps the newest, and says when the last one was made", async () => {
  const folder = temporaryFolder();
  const backups = join(folder, "backups");
  const old = ["2020-01-01T00-00-00.000Z", "2020-01-02T00-00-00.000Z"];
  for (const name of old) mkdirSync(join(backups, name), { recursive: true });
  writeFileSync(join(backups, "notes"), "stays");
  server = await startTestServer(settingsOf(folder));
  const complete = (): string[] => readdirSync(backups).filter((name) => /^20\d\d-.*Z$/.test(name));
  // Old backups are removed after a new one is complete.
  const isDone = (): void => {
    expect(complete().filter((name) => name > "2021")).toHaveLength(2);
    for (const name of old) expect(readdirSync(backups)).not.toContain(name);
  };
  await vi.waitFor(isDone, { timeout: 50_000, interval: 100 });
  const text = await (await fetch(server.ready.metrics!)).text();
  const [, seconds] = /^selvedge_backup_last_success_timestamp_seconds (\S+)$/m.exec(text) ?? [];
  expect(Number(seconds)).toBeGreaterThan(Date.now() / 1000 - 600);
  await server.close(0);
  server = undefined;
  expect(readdirSync(backups)).toContain("notes");
  expect(readdirSync(backups).filter((name) => name.includes("partial"))).toEqual([]);
  await verify(backupAt(join(backups, complete().at(-1)!)));
});

it("refuses settings that make no sense together", async () => {
  await expect(startTestServer({ backupEvery: "6h", backupFolder: "x" })).rejects.toThrow("--ephemeral");
  await expect(startTestServer({ backupEvery: "6h" })).rejects.toThrow("--backup-folder");
  await expect(startTestServer({ backupEvery: "often", backupFolder: "x" })).rejects.toThrow("such as 6h");
});
