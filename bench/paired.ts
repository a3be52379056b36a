import { resolve } from "node:path";
import { photo } from "./images-lib.ts";
import { startPeer, startSelvedge } from "./lib/child.ts";
import { atMost, median, printGoals, printTable, type Goal } from "./lib/measure.ts";
import { prepared } from "./lib/planes.ts";
import { treeCpuMicroseconds } from "./lib/tree.ts";

/*
 * `node bench/paired.ts CHECKOUT [LAUNCHES [ROUNDS [KIND]]]`: compares CPU time per request of this checkout with
 * another, in alternating rounds: proxy, snippet, script, customer's script, workflows, and images. CHECKOUT is a folder
 * with its dependencies installed, for example a worktree of the previous commit. Both sides are restarted LAUNCHES
 * times, because decisions of V8 and the allocator last as long as the process: two launches of the same checkout
 * differ by up to 10 %. The result is the median of the launches.
 */
const [other, launchesText = "9", roundsText = "6", ...only] = process.argv.slice(2);
if (other === undefined) {
  process.stderr.write("Expected the folder of another checkout as the first argument\n");
  process.exit(2);
}
const launches = Number(launchesText);
const rounds = Number(roundsText);
/** V8 finishes compiling hot code after about 18,000 requests. */
const warmUpRounds = Number(process.env["BENCH_WARM_UP"] ?? 8);
const ratioMax = 1.03;
const flags = ["--cells", "1", "--workflow-create-rate", "0", "--workflow-account-create-rate", "0"];

const origin = await startPeer("origin.ts");
const picture = await photo(1200, 900);
const launched = new Map<string, Measured[]>();
for (let launch = 0; launch < launches; launch++) {
  // The side that starts first alternates too.
  const start = {
    this: async () => prepared(await startSelvedge(flags), origin.port, picture),
    other: async () => prepared(await startSelvedge(flags, undefined, resolve(other)), origin.port, picture),
  };
  const otherFirst = launch % 2 === 0 ? await start.other() : undefined;
  const sides = { this: await start.this(), other: otherFirst ?? (await start.other()) };
  for (const kind of Object.keys(sides.this.kinds)) {
    if (only.length > 0 && !only.some((part) => kind.includes(part))) continue;
    const measured = await measure(sides, kind);
    launched.set(kind, [...(launched.get(kind) ?? []), measured]);
    process.stderr.write(
      `launch ${launch + 1}: ${kind}: ${measured.ratio.toFixed(3)}, ` +
        `server ${measured.server.toFixed(3)}, cells ${measured.cells.toFixed(3)}\n`,
    );
  }
  for (const side of Object.values(sides)) await side.stop();
}
await origin.stop();

const goals: Goal[] = [];
const rows: (string | number)[][] = [];
for (const [kind, all] of launched) {
  const ratios = all.map(({ ratio }) => ratio).toSorted((a, b) => a - b);
  const spread = `${ratios[0]!.toFixed(3)} to ${ratios.at(-1)!.toFixed(3)}`;
  rows.push([kind, median(all.map((each) => each.this)), median(all.map((each) => each.other)), spread]);
  goals.push(atMost(`CPU, ${kind}, this / other`, median(ratios), ratioMax));
}
printTable(["CPU µs each", "this", "other", "ratio of the launches"], rows);
printGoals(goals);

interface Measured {
  /** CPU microseconds of a request. */
  this: number;
  other: number;
  /** The ratio of the sums. */
  ratio: number;
  /** The difference in CPU time due to the server's own process and due to its cells, as fractions of `other`. */
  server: number;
  cells: number;
}

type Side = Awaited<ReturnType<typeof prepared>>;

/** Measures one kind of request at both sides of a launch. */
async function measure(sides: Record<"this" | "other", Side>, kind: string): Promise<Measured> {
  const cpu = { this: { own: 0, below: 0 }, other: { own: 0, below: 0 } };
  let requests = 0;
  for (let round = -warmUpRounds; round < rounds; round++) {
    const order = ["this", "other"] as const;
    for (const name of round % 2 === 0 ? order : order.toReversed()) {
      const { pid, kinds } = sides[name];
      const { count, run } = kinds[kind]!;
      const before = treeCpuMicroseconds(pid);
      await run(count);
      const after = treeCpuMicroseconds(pid);
      if (round < 0) continue; // warm-up
      cpu[name].own += after.own - before.own;
      cpu[name].below += after.below - before.below;
      requests += count / 2;
    }
  }
  const all = { this: cpu.this.own + cpu.this.below, other: cpu.other.own + cpu.other.below };
  return {
    this: all.this / requests,
    other: all.other / requests,
    ratio: all.this / all.other,
    server: (cpu.this.own - cpu.other.own) / all.other,
    cells: (cpu.this.below - cpu.other.below) / all.other,
  };
}
