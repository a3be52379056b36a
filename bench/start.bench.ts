import { cpuMicroseconds, atMost, median, printGoals, reported } from "./lib/measure.ts";
import { benchToken, startSelvedge } from "./lib/child.ts";

/** Measures `selvedge serve --ephemeral` from its launch to the first response. */
const walls: number[] = [];
const cpus: number[] = [];
for (let round = 0; round < 7; round++) {
  const start = performance.now();
  const selvedge = await startSelvedge(["--ephemeral"]);
  const answer = await fetch(`${selvedge.ready.api}/user`, {
    headers: { authorization: `Bearer ${benchToken}` },
  });
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  walls.push((performance.now() - start) / 1000);
  cpus.push(cpuMicroseconds(selvedge.pid) / 1e6);
  await selvedge.stop();
}
printGoals([
  reported("time to the first answer, s", median(walls)),
  atMost("CPU time to the first answer, s", median(cpus), 0.5),
]);
