import { readFileSync } from "node:fs";
import { projectUrl } from "../util/module-url.ts";

/** The version of this program, as in package.json. */
export const programVersion: string = (
  JSON.parse(readFileSync(projectUrl("package.json"), "utf8")) as { version: string }
).version;

/** Whether a version MAJOR.MINOR.PATCH is lower than another. */
export function isOlder(version: string, than: string): boolean {
  const [parts, others] = [version, than].map((each) =>
    each.split(".").map((part) => Number.parseInt(part, 10)),
  );
  for (const [index, part] of parts!.entries()) {
    const other = others![index] ?? 0;
    if (part !== other) return part < other;
  }
  return false;
}
