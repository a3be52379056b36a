import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { NodeFolder } from "./node-folder.ts";

const module = new URL("./node-folder.ts", import.meta.url).href;

/** A process that has a folder of a node, until it is killed. */
async function nodeIn(parent: string): Promise<{ path: string; kill: () => Promise<void> }> {
  const program = `const { NodeFolder } = await import(${JSON.stringify(module)});
    const { path } = await NodeFolder.create([${JSON.stringify(parent)}]);
    setInterval(() => {}, 1000);
    process.stdout.write(path);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [path] = (await once(child.stdout, "data")) as [Buffer];
  const exited = once(child, "exit");
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  onTestFinished(kill);
  return { path: path.toString(), kill };
}

it("removes folders of killed nodes, and none of a node whose supervisor or processes live", async () => {
  const parent = mkdtempSync(join(tmpdir(), "selvedge-test-"));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  const living = await nodeIn(parent);
  const dead = await nodeIn(parent);
  const left = await nodeIn(parent);
  for (const { path } of [living, dead, left]) writeFileSync(join(path, "ring"), "ring");
  const socketOfMain = createServer().listen(join(left.path, "changes.sock"));
  await once(socketOfMain, "listening");
  await dead.kill();
  await left.kill();
  const other = join(parent, "selvedge-node-without-owner");
  mkdirSync(other);
  const folder = await NodeFolder.create([parent]);
  const paths = [living.path, dead.path, left.path, other, folder.path];
  expect(paths.map((path) => existsSync(path))).toEqual([true, false, true, true, true]);
  socketOfMain.close();
  folder.remove();
  expect(existsSync(folder.path)).toBe(false);
});
