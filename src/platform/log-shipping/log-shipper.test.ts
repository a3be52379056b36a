import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it, vi } from "vitest";
import { FolderArchive } from "../storage/archive/folder.ts";
import { LogLost, type LogCopier } from "./log-copier.ts";
import { LogShipper } from "./log-shipper.ts";
import { Spool } from "./spool.ts";

const folder = mkdtempSync(join(tmpdir(), "selvedge-log-shipper-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Begins a chain twice in a row, each time with an error. Returns the number of attempts. */
async function attemptsWith(error: Error): Promise<number> {
  const begin = vi.fn<LogCopier["begin"]>(() => {
    throw error;
  });
  const copier = { begin, copy() {}, drop() {}, state: undefined } as unknown as LogCopier;
  const report = vi.fn();
  const options = { copier, blobs: undefined, target: folder, dataDir: folder, keepMs: 0, report };
  const spool = new Spool(join(folder, "spool"));
  const shipper = new LogShipper({ ...options, spool, files: new FolderArchive(join(folder, "target")) });
  for (let calls = 0; calls < 2; calls++) {
    shipper.tick();
    await shipper.end();
  }
  expect(report).toHaveBeenCalledWith({ error });
  return begin.mock.calls.length;
}

it("begins again at the next call when the log began again meanwhile", async () => {
  expect(await attemptsWith(new LogLost("The log of the database began again"))).toBe(2);
});

it("waits after an error of the target", async () => {
  expect(await attemptsWith(new Error("no space left"))).toBe(1);
});
