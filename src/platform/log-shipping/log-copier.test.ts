import { closeSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, it, vi } from "vitest";
import { LogIndex } from "../storage/commit-times.ts";
import { LogCopier, LogLost } from "./log-copier.ts";
import { Spool } from "./spool.ts";

const folder = mkdtempSync(join(tmpdir(), "selvedge-log-copier-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("leaves no transaction and the earlier chain when the log begins again during the start of a chain", () => {
  const path = join(folder, "test.db");
  const database = new DatabaseSync(path);
  database.exec("pragma journal_mode = wal; create table entries (text text)");
  const descriptor = LogIndex.open(path);
  const copier = new LogCopier(path, descriptor, new Spool(join(folder, "spool")), join(folder, "times"));
  copier.begin("earlier", "target").database.close();

  const look = vi.spyOn(LogIndex.prototype, "end").mockImplementationOnce(() => {
    look.mockRestore();
    const before = new LogIndex(descriptor).end();
    database.exec("pragma wal_checkpoint(restart); insert into entries values ('after')");
    return before;
  });
  expect(() => copier.begin("later", "target")).toThrow(LogLost);
  expect(copier.state?.chain).toBe("earlier");
  expect(database.prepare("pragma wal_checkpoint(truncate)").get()).toMatchObject({ busy: 0 });
  copier.close();
  database.close();
  closeSync(descriptor);
});
