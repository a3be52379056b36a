import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, it } from "vitest";
import { LogSpool } from "./spool.ts";

it("has room for a job while the uploads of others fail", async () => {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-spool-"));
  const spool = new LogSpool(folder, 1, pino({ enabled: false }));
  const limits = { bytesMax: 64 * 1024, recordsMax: Infinity, intervalMs: 60_000, delimiter: "" };
  const record = "x".repeat(4095) + "\n";
  const sizes: number[] = [];
  for (let id = 1; id <= 6; id++) {
    const writer = spool.writer(id, "http_requests", limits);
    const before = spool.bytes;
    while (spool.hasRoom(id)) await writer.write([record]);
    await writer.close();
    sizes.push((spool.bytes - before) / 1024);
  }
  // At first a quarter of the spool, and later the free space.
  expect(sizes).toEqual([256, 256, 256, 128, 64, 32]);
  await spool.measure();
  expect(spool.bytes).toBeLessThan(1024 * 1024);
  rmSync(folder, { recursive: true });
});
