import { pino } from "pino";
import { expect, it, onTestFinished, vi } from "vitest";
import { openStorage } from "../../../platform/storage/storage.ts";
import { AlarmWrites } from "./alarm-writes.ts";

it("what was dropped during a transaction is not written again after it failed", async () => {
  const storage = await openStorage("sqlite::memory:");
  onTestFinished(() => storage.close());
  const { promise: failed, reject } = Promise.withResolvers<never>();
  const write = vi.spyOn(storage, "write").mockReturnValueOnce(failed);
  const writes = new AlarmWrites(storage, pino({ enabled: false }));
  writes.note("given", "1", undefined);
  const written = writes.write();
  await expect.poll(() => write.mock.calls.length).toBe(1);
  writes.clear((namespace) => namespace === "given"); // another node has it now
  reject(new Error("no connection"));
  await expect(written).rejects.toThrow("no connection");
  await writes.write();
  expect(write.mock.calls.length).toBe(1);
});
