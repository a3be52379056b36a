import { printNote } from "./output.ts";

/** Ends the process after `timeoutMs` if it is still alive, and prints the open resources that keep it alive. */
export function exitSoon(timeoutMs: number): void {
  setTimeout(() => {
    const open = Object.entries(Object.groupBy(process.getActiveResourcesInfo(), (name) => name))
      .map(([name, all]) => `${all!.length} ${name}`)
      .join(", ");
    printNote(`exiting although something is still open: ${open}`);
    process.exit();
  }, timeoutMs).unref();
}
