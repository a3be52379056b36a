import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { operatorsDay } from "../deployment/day.ts";
import { startPostgres } from "../helpers/postgres.ts";
import { startS3 } from "../helpers/s3.ts";
import { files } from "../helpers/sources.ts";

/*
 * `node test/proofs/operators-day.ts`: three machines follow docs/deployment.md with the npm package, which each installs
 * globally, and the second one upgrades to a package with another version. About two minutes. The short form, with the
 * programs of the clone, is test/deployment/day.test.ts.
 */
const folder = mkdtempSync(join(tmpdir(), "selvedge-day-"));
const upgradeVersion = "0.1.1-next";

/** A package in a folder of its own, from a copy of the clone with a version. */
function packed(name: string, version?: string): string {
  const clone = join(folder, name);
  for (const file of files) cpSync(file, join(clone, file));
  symlinkSync(resolve("node_modules"), join(clone, "node_modules"));
  if (version !== undefined) {
    const file = join(clone, "package.json");
    writeFileSync(file, readFileSync(file, "utf8").replace(/"version": "[^"]+"/, `"version": "${version}"`));
  }
  execFileSync("npm", ["pack", "--pack-destination", folder], { cwd: clone, stdio: "ignore" });
  return readdirSync(folder).find((each) => each.endsWith(`-${version ?? versionOf(clone)}.tgz`))!;
}
const versionOf = (clone: string): string =>
  (JSON.parse(readFileSync(join(clone, "package.json"), "utf8")) as { version: string }).version;

const [postgres, s3] = [await startPostgres(), await startS3()];
try {
  const [now, next] = [packed("now"), packed("next", upgradeVersion)];
  const seen = await operatorsDay({
    postgres,
    s3,
    programs: { prefix: true },
    pack: (to, upgrade) => cpSync(join(folder, upgrade ? next : now), join(to, upgrade ? next : now)),
    log: (line) => process.stdout.write(`${line}\n`),
  });
  process.stdout.write(`${JSON.stringify(seen, null, 2)}\n`);
  const isRight =
    Object.values(seen.images).every(([status, isSame]) => status === 200 && isSame) &&
    Object.values(seen.zones).every((zones) => zones === 1) &&
    seen.versions.at(-1)!.includes(upgradeVersion) &&
    !seen.versions[0]!.includes(upgradeVersion);
  process.stdout.write(
    isRight ? "every step had the output that the page says\n" : "the end of the day is wrong\n",
  );
  process.exitCode = isRight ? 0 : 1;
} finally {
  await postgres.stop();
  await s3.stop();
  rmSync(folder, { recursive: true, force: true });
}
