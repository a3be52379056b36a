import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { temporaryFolder } from "../../../test/helpers/process.ts";
import { watchFile } from "./watch-file.ts";

it("reports each change from the moment when the watch begins", async () => {
  const file = join(temporaryFolder(), "watched");
  writeFileSync(file, "one");
  const changed = vi.fn<() => void>();
  onTestFinished(watchFile(file, 5, changed));
  writeFileSync(file, "changed at once");
  await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(1));
  writeFileSync(`${file}.next`, "replaced");
  renameSync(`${file}.next`, file);
  await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(2));
  rmSync(file);
  await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(3));
  writeFileSync(file, "there again");
  await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(4));
});

it("reports nothing after it is stopped", async () => {
  const file = join(temporaryFolder(), "watched");
  const [stopped, other] = [vi.fn<() => void>(), vi.fn<() => void>()];
  watchFile(file, 5, stopped)();
  onTestFinished(watchFile(file, 5, other));
  writeFileSync(file, "new");
  await vi.waitFor(() => expect(other).toHaveBeenCalled());
  expect(stopped).not.toHaveBeenCalled();
});
