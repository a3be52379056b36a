import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { operations } from "../src/capabilities.ts";
import { npm } from "../test/clients/programs/packages.ts";
import type { RecordedAnswer } from "../test/helpers/record-answers.ts";
import { exceptions } from "./conformance/exceptions.ts";
import { callsByOperation, conformancePage } from "./conformance/page.ts";
import { sdkCalls } from "./conformance/sdk-calls.ts";
import { compileAnswers, type Answered } from "./conformance/sdk-types.ts";

/*
 * Writes docs/reference/conformance.md from the answers in the tests. With --check it only reports whether the page is
 * current.
 *
 *   npm run conformance [-- --check]
 *
 * Runs the tests, unless RECORD_ANSWERS names a folder with the recorded answers of a run. Fails when an answer does not
 * fit the official client's types.
 */
const page = "docs/reference/conformance.md";
const olderReleases = ["6.5.0", "5.2.0", "4.5.0", "3.5.0"];

const given = process.env["RECORD_ANSWERS"];
const folder = given ?? mkdtempSync(join(tmpdir(), "selvedge-answers-"));
try {
  if (given === undefined)
    execFileSync("vitest", ["run"], { stdio: "inherit", env: { ...process.env, RECORD_ANSWERS: folder } });
  make(readAnswers(folder));
} finally {
  if (given === undefined) rmSync(folder, { recursive: true });
}

function readAnswers(from: string): RecordedAnswer[] {
  return globSync("*.ndjson", { cwd: from }).flatMap((file) =>
    readFileSync(join(from, file), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as RecordedAnswer),
  );
}

function make(answers: RecordedAnswer[]): void {
  const packageFolder = "node_modules/cloudflare";
  const calls = sdkCalls(packageFolder);
  const methods = callsByOperation(operations, calls);
  const compiled = answers
    .filter((answer) => "result" in answer)
    .flatMap(({ operation, result }): Answered[] =>
      (methods.get(operation) ?? []).map((call) => ({ operation, call, result })),
    );
  const failures = compileAnswers("node_modules/.cache/selvedge-conformance", packageFolder, compiled);
  const mismatches = new Set<string>();
  for (const [{ operation, call }, words] of failures) {
    if (exceptions[operation] !== undefined || mismatches.has(operation)) continue;
    mismatches.add(operation);
    process.stderr.write(`${operation} does not fit ${call.className}.${call.method}: ${words}\n`);
  }
  for (const operation of Object.keys(exceptions)) {
    if ([...failures.keys()].some((failed) => failed.operation === operation)) continue;
    process.stderr.write(`${operation} fits the client's types and needs no exception\n`);
    process.exitCode = 1;
  }
  const { version } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")) as {
    version: string;
  };
  const releases = [{ version, calls }];
  for (const older of olderReleases) {
    const installed = npm(`cloudflare@${older}`);
    if ("missing" in installed)
      throw new Error(`cloudflare ${older} cannot be installed: ${installed.missing}`);
    releases.push({ version: older, calls: sdkCalls(join(installed.folder, packageFolder)) });
  }
  const content = conformancePage({ operations, answers, releases, mismatches });
  if (mismatches.size > 0) process.exitCode = 1;
  if (readFileSync(page, { encoding: "utf8", flag: "a+" }) === content) return;
  if (!process.argv.includes("--check")) {
    writeFileSync(page, content);
    process.stderr.write(`wrote ${page}\n`);
    return;
  }
  process.stderr.write(`${page} is not current. Run: npm run conformance\n`);
  process.exitCode = 1;
}
