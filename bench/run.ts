import { readdirSync } from "node:fs";
import { spawnSync } from "node:child_process";

/** `npm run bench` runs every benchmark, `npm run bench -- api` one. Each prints a table, and exits with 1 on a missed goal. */
const known = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(".bench.ts"))
  .map((file) => file.replace(".bench.ts", ""));
const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
const unknown = wanted.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`Unknown benchmark ${unknown.join(", ")}. Known: ${known.join(", ")}\n`);
  process.exit(2);
}
for (const name of wanted.length > 0 ? wanted : known) {
  const { status } = spawnSync(process.execPath, [`${import.meta.dirname}/${name}.bench.ts`], {
    stdio: "inherit",
  });
  if (status !== 0) process.exitCode = 1;
}
