import { readFileSync } from "node:fs";

const magic = Buffer.from("SQLite format 3\0");

/** Whether a file is a state that a test has saved, which is a database. */
export const isSavedState = (bytes: Uint8Array): boolean => magic.equals(bytes.subarray(0, magic.length));

/** The content of the database to begin with. Other files are applied through the operations (`src/cli/testing`). */
export function savedImage(file: string | undefined): Uint8Array | undefined {
  const bytes = file === undefined ? undefined : readFileSync(file);
  return bytes !== undefined && isSavedState(bytes) ? bytes : undefined;
}
