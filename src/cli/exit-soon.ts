/** Ends the process after `timeoutMs` if something still keeps it alive, and says what that is. */
export function exitSoon(timeoutMs: number): void {
  setTimeout(() => {
    const open = Object.entries(Object.groupBy(process.getActiveResourcesInfo(), (name) => name))
      .map(([name, all]) => `${all!.length} ${name}`)
      .join(", ");
    process.stderr.write(`exiting although something is still open: ${open}\n`);
    process.exit();
  }, timeoutMs).unref();
}
