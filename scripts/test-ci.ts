import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

/*
 * Runs all tests, or those of the given files. Up to three files that failed run again, twice and alone: one test of
 * ten thousand that fails by chance must not hold back unrelated work. A test that passes then is named at the end,
 * because it is still a bug, in the product until shown otherwise. Everything else that fails ends with status 1.
 */
const repeatedFilesMax = 3;
const repetitions = 2;

interface FileResult {
  name: string;
  status: string;
  assertionResults: { status: string; fullName: string }[];
}

function runTests(args: readonly string[]): boolean {
  return spawnSync("vitest", ["run", ...args], { stdio: "inherit" }).status === 0;
}

/** The files that failed, with the names of their tests that failed; none for a run without a report. */
function failuresIn(report: string): { file: string; tests: string[] }[] {
  try {
    const { testResults } = JSON.parse(readFileSync(report, "utf8")) as { testResults: FileResult[] };
    return testResults
      .filter(({ status }) => status === "failed")
      .map(({ name, assertionResults }) => ({
        file: relative(process.cwd(), name),
        tests: assertionResults.filter(({ status }) => status === "failed").map(({ fullName }) => fullName),
      }));
  } catch {
    return []; // the run ended before it wrote its report
  }
}

const folder = mkdtempSync(join(tmpdir(), "selvedge-tests-"));
const report = join(folder, "report.json");
const passed = runTests([
  ...process.argv.slice(2),
  "--reporter=default",
  "--reporter=json",
  `--outputFile.json=${report}`,
]);
const failures = passed ? [] : failuresIn(report);
rmSync(folder, { recursive: true });

const isRepeatable = failures.length > 0 && failures.length <= repeatedFilesMax;
const passAlone = (file: string): boolean =>
  Array.from({ length: repetitions }).every(() => runTests([file]));
if (!passed && !(isRepeatable && failures.every(({ file }) => passAlone(file)))) process.exit(1);
for (const { file, tests } of failures)
  console.error(
    `UNSTABLE ${file}: failed beside other tests, passed ${repetitions} times alone: ${tests.join("; ")}`,
  );
