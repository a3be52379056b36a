import type { FaultKind } from "../errors.ts";
import type { Exit } from "./process.ts";

/** The cause of an exit that this program did not request. */
export function causeOf({ code, signal, lastWords }: Exit): FaultKind {
  if (signal === "SIGKILL" || signal === "SIGTERM" || code === 137 || code === 143) return "killed";
  return /heap limit|out of memory/i.test(lastWords) ? "memory" : "crashed";
}
