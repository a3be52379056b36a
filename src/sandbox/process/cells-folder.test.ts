import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { cellsFolder } from "./cells-folder.ts";

/** Programs that run cells and are ended in different ways. */
let temporary: string;
const running: ChildProcess[] = [];
beforeEach(() => {
  temporary = realpathSync(mkdtempSync(join(tmpdir(), "cells-")));
  chmodSync(temporary, 0o755); // cells run as another user if the tests run as root
});
afterEach(() => {
  for (const child of running.splice(0)) child.kill("SIGKILL");
  rmSync(temporary, { recursive: true, force: true });
});

interface Program {
  process: ChildProcess;
  folder: string;
}
/** Starts a program that boots a cell and prints the folder of the cell. */
async function start(): Promise<Program> {
  const code = `
    import { Cell } from ${JSON.stringify(import.meta.resolve("../cell.ts"))};
    import { cellDefaults } from ${JSON.stringify(import.meta.resolve("../settings.ts"))};
    import { cellsFolder } from ${JSON.stringify(import.meta.resolve("./cells-folder.ts"))};
    const cell = await Cell.boot(1, cellDefaults, () => {});
    console.log(await cellsFolder());
    process.on("SIGTERM", () => process.exit());`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    env: { ...process.env, TMPDIR: temporary },
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.push(child);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { process: child, folder: line.toString().trim() };
}
async function end({ process: child }: Program, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal);
  await once(child, "exit");
}

it("removes the folder of a killed program, and nothing else", async () => {
  const living = await start();
  const killed = await start();
  await end(killed, "SIGKILL");
  expect(readdirSync(killed.folder)).toEqual([expect.stringMatching(/^cell-/), "owner.sock"]);

  // Other entries that may be there: folders of other users, an unfinished one, and a file.
  const others = ["selvedge-cells-mine", "selvedge-new-halfmade", "selvedge-cell-old", "else"];
  for (const name of others) mkdirSync(join(temporary, name));
  writeFileSync(join(temporary, "selvedge-cells-file"), "");
  symlinkSync(killed.folder, join(temporary, "selvedge-cells-link"));
  const server = createServer().listen(join(temporary, "selvedge-cells-mine", "owner.sock"));
  await once(server, "listening");

  const next = await start();
  await vi.waitFor(() => expect(existsSync(killed.folder)).toBe(false));
  expect(readdirSync(temporary).toSorted()).toEqual(
    [
      ...others,
      "selvedge-cells-file",
      "selvedge-cells-link",
      ...[living, next].map(({ folder }) => folder.slice(temporary.length + 1)),
    ].toSorted(),
  );
  expect(readdirSync(living.folder)).toEqual([expect.stringMatching(/^cell-/), "owner.sock"]);
  server.close();

  // A program that is asked to end removes its folder itself.
  await end(living, "SIGTERM");
  expect(existsSync(living.folder)).toBe(false);
  expect(existsSync(next.folder)).toBe(true);
});

it("leaves a suspended program's folder alone", async () => {
  const still = await start();
  still.process.kill("SIGSTOP");
  const killed = await start();
  await end(killed, "SIGKILL");
  await start();
  await vi.waitFor(() => expect(existsSync(killed.folder)).toBe(false));
  expect(existsSync(still.folder)).toBe(true);
});

it("makes a new folder when its own was removed", async () => {
  const first = await cellsFolder();
  expect(await cellsFolder()).toBe(first);
  rmSync(first, { recursive: true });
  const [second, same] = await Promise.all([cellsFolder(), cellsFolder()]);
  expect(existsSync(second)).toBe(true);
  expect(same).toBe(second);
});
