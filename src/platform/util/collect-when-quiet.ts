import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Share of one core. Below it, the process counts as idle. */
const quietShare = 0.05;
/** On a machine without free cores, a process with much work uses little CPU time too. Then its event loop is seldom idle. */
const loopShare = 0.5;
/** Less growth is not worth a collection of a few dozen milliseconds. */
const grownBytesMin = 24 * 1024 * 1024;
/** A collection stops the process. If one takes longer than this, later ones are left to V8. */
const pauseMsMax = 100;

/**
 * Runs the garbage collector when the process is idle, once after each burst of work. V8 itself collects only
 * when it needs memory, so an idle process would keep the garbage of a burst. Returns a function that stops
 * it.
 */
export function collectWhenQuiet(lookEveryMs = 5000): () => void {
  let collect: (() => void) | undefined;
  let collectedBytes = 0;
  let usage = process.cpuUsage();
  let loop = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(usage);
    usage = process.cpuUsage();
    const { utilization } = performance.eventLoopUtilization(loop);
    loop = performance.eventLoopUtilization();
    const isQuiet = user + system < quietShare * lookEveryMs * 1000 && utilization < loopShare;
    if (!isQuiet || heapBytes() < collectedBytes + grownBytesMin) return;
    collect ??= collector();
    // Measure CPU time, so that other processes on a busy machine do not count.
    const before = process.threadCpuUsage();
    collect();
    const after = process.threadCpuUsage();
    if (after.user + after.system - before.user - before.system > pauseMsMax * 1000) clearInterval(timer);
    collectedBytes = heapBytes();
    usage = process.cpuUsage();
  }, lookEveryMs);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Collects all garbage of the start of this process and gives the memory back to the system, which an ordinary collection
 * keeps for the next objects. Stops the process for about 0.1 s.
 */
export function collectStart(): void {
  collector()({ type: "major", execution: "sync", flavor: "last-resort" });
}

interface Collection {
  type: "major";
  execution: "sync";
  flavor: "last-resort";
}

const heapBytes = (): number => getHeapStatistics().total_heap_size;

function collector(): (how?: Collection) => void {
  setFlagsFromString("--expose-gc"); // applies to contexts created from now on, such as this one
  const gc = runInNewContext("gc") as ReturnType<typeof collector>;
  setFlagsFromString("--no-expose-gc");
  return gc;
}
