import { readFileSync } from "node:fs";
import { tryAll } from "../images/damage.ts";
import { startImagePlatform } from "../images/platform.ts";

/** Ten thousand damaged files, uploaded and transformed: `node test/proofs/images-fuzz.ts [COUNT [FIRST]]`. */
const [first, total] = [Number(process.argv[3] ?? 0), Number(process.argv[2] ?? 10_000)];
const step = Math.ceil(total / 10);
const platform = await startImagePlatform({ imageAcceptAvif: true, imageAcceptSvg: true });
const { engine } = platform.services.images;
const residentMegabytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;

let faults = 0;
let slowest = 0;
let slowestFile = 0;
const pids = new Set<number>();
process.stdout.write("files  refused  undecodable  pictures  slowest ms  RSS of the image process, MB\n");
for (let from = first; from < first + total; from += step) {
  const outcome = await tryAll(platform, from, Math.min(step, first + total - from));
  for (const fault of outcome.faults) process.stdout.write(`${fault}\n`);
  faults += outcome.faults.length;
  if (outcome.slowestMs > slowest) [slowest, slowestFile] = [outcome.slowestMs, outcome.slowest];
  pids.add(engine.pid!);
  const row = [from + step, outcome.refused, outcome.undecodable, outcome.pictures];
  process.stdout.write(
    `${row.map((value) => String(value).padStart(6)).join("   ")}   ${outcome.slowestMs.toFixed(0).padStart(8)}   ${residentMegabytes(engine.pid!).toFixed(0).padStart(8)}\n`,
  );
}
process.stdout.write(
  `${total} files: ${faults} faults, the slowest, number ${slowestFile}, took ${slowest.toFixed(0)} ms, ${pids.size} image process(es)\n`,
);
process.exitCode = faults === 0 && slowest < 5000 ? 0 : 1;
await platform.close(1000);
