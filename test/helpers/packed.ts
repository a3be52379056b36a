import { execFile } from "node:child_process";
import { cpSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { files } from "./sources.ts";

const run = promisify(execFile);

/**
 * Makes the npm package in `clone`, a copy of the clone, because packing replaces package.json for a moment. Installs it
 * into `project`, which is empty, as `npm install` does. `tarballs` is an empty folder.
 */
export async function installPacked(clone: string, tarballs: string, project: string): Promise<void> {
  for (const file of files) cpSync(file, join(clone, file));
  symlinkSync(resolve("node_modules"), join(clone, "node_modules"));
  await run("npm", ["pack", "--pack-destination", tarballs], { cwd: clone });
  const [tarball] = readdirSync(tarballs);
  writeFileSync(join(project, "package.json"), '{ "name": "empty", "private": true }');
  const options = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  await run("npm", ["install", ...options, join(tarballs, tarball!)], { cwd: project });
}
