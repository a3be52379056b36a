import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Of one core; below it there is time. */
const quietShare = 0.05;
/** Less is not worth the few dozen milliseconds that it takes. */
const grownBytesMin = 24 * 1024 * 1024;
/** Everything stands still meanwhile. A heap that takes longer is left to V8 from then on. */
const pauseMsMax = 100;

/**
 * V8 collects when it needs room, not when there is time: what a burst of work leaves stays for as long as nothing happens.
 * This gives it back in a quiet moment, once for each burst. Returns what ends it.
 */
export function collectWhenQuiet(lookEveryMs = 5000): () => void {
  let collect: (() => void) | undefined;
  let collectedBytes = 0;
  let usage = process.cpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(usage);
    usage = process.cpuUsage();
    const isQuiet = user + system < quietShare * lookEveryMs * 1000;
    if (!isQuiet || heapBytes() < collectedBytes + grownBytesMin) return;
    collect ??= collector();
    const startedAt = performance.now();
    collect();
    if (performance.now() - startedAt > pauseMsMax) clearInterval(timer);
    collectedBytes = heapBytes();
    usage = process.cpuUsage();
  }, lookEveryMs);
  timer.unref();
  return () => clearInterval(timer);
}

const heapBytes = (): number => getHeapStatistics().total_heap_size;

function collector(): () => void {
  setFlagsFromString("--expose-gc"); // for contexts that are made from now on: this one
  const gc = runInNewContext("gc") as () => void;
  setFlagsFromString("--no-expose-gc");
  return gc;
}
