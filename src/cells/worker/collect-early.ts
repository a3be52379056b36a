/*
 * V8 gives an isolate room for tens of megabytes before it collects its old objects for the first time, and learns only then how few
 * they are. Far more memory of workerd's hangs on them than V8 knows of: cells grew to half a gigabyte with three small scripts.
 * So an isolate that is in use is brought to collect once, early.
 */
const { Memory } = WebAssembly;
const { construct } = Reflect;
const usesBefore = 200;
/** Of 64 KiB: more than V8 lets wait for its next collection. Nothing touches them, so the system gives nothing for them. */
const pages = 2048;

let uses = 0;

/** Counts a request. */
export function collectEarly(): void {
  if (++uses !== usesBefore) return;
  try {
    construct(Memory, [{ initial: pages, maximum: pages }]);
  } catch {
    // without it the cell is only larger
  }
}
