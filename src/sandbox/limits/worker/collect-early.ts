/*
 * Forces one early garbage collection. V8 first lets the old generation of an isolate grow by tens of
 * megabytes, and far more memory of workerd depends on these objects than V8 knows of: cells grew to half a
 * gigabyte with three small scripts.
 */
const { Memory } = WebAssembly;
const { construct } = Reflect;
const usesBefore = 200;
/**
 * Pages of 64 KiB: more external memory than V8 accepts before a collection. They are never touched, so they
 * use no real memory.
 */
const pages = 2048;

const startsPerCollection = 200;

let uses = 0;
let starts = 0;

/** Counts a request, and triggers the collection at the 200th. */
export function collectEarly(): void {
  if (++uses === usesBefore) collect();
}

/**
 * Counts an object that starts, and triggers a collection at each 200th. Objects that have ended hold 30 KB each until
 * then, while their start takes hundreds of times the work of collecting them.
 */
export function collectEnded(): void {
  if (++starts % startsPerCollection === 0) collect();
}

function collect(): void {
  try {
    construct(Memory, [{ initial: pages, maximum: pages }]);
  } catch {
    // without it the cell only uses more memory
  }
}
