import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";

/* A process that checks one database of an object. Its parent ends it when the check takes too long. */
process.once("message", (path: string) => {
  process.send?.(faultIn(path), () => process.exit(0));
});
process.on("disconnect", () => process.exit(0));

/** Longest text or blob that SQLite reads here. workerd allows only shorter ones. */
const valueBytes = 32 * 1024 * 1024;

/** Why a file is not an intact database; null if it is. */
function faultIn(path: string): string | null {
  const url = pathToFileURL(path);
  url.searchParams.set("immutable", "1"); // no process writes it
  try {
    using database = new DatabaseSync(url, { readOnly: true, limits: { length: valueBytes } });
    // The customer's CHECK constraints say nothing about damage, and evaluating them costs time.
    database.exec("pragma ignore_check_constraints = on");
    const [found] = database.prepare("pragma quick_check(1)").all();
    const result = String(Object.values(found ?? {})[0]);
    return result === "ok" ? null : result;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
