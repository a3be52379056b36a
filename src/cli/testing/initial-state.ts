import { readFileSync } from "node:fs";
import { isSavedState } from "../../platform/storage/under-test/saved-image.ts";
import { ControlClient } from "../../testkit/control-client.ts";
import type { Ready } from "../../server.ts";
import { apply, showStep } from "../migration/apply.ts";
import { openAccount } from "../migration/command-accounts.ts";
import { readDocument, type Document } from "../migration/document.ts";
import { MigrationError } from "../migration/failure.ts";
import { documentOfSeed } from "./seed.ts";

/** Fills an empty platform during its start. The resulting state is the one that a reset restores. */
export type PlatformFilling = (ready: Ready, token: string) => Promise<void>;

/**
 * Reads a file of `selvedge import` or a seed, whose content is created through the operations of the API; undefined for a
 * saved state, which is the database itself. Throws a MigrationError if the file is invalid.
 */
export function initialStateOf(file: string): PlatformFilling | undefined {
  const bytes = readFileSync(file);
  if (isSavedState(bytes)) return undefined;
  const document = documentIn(file, bytes.toString());
  return async (ready, token) => {
    const { api: baseUrl, account_id: accountId, control } = ready;
    const account = await openAccount(
      { name: "test", baseUrl, token, accountId, dns: undefined },
      document.zones.map(({ name }) => name),
      { callsPerSecond: 0 },
      true,
    );
    const { failures } = await apply(document, account, false, () => {});
    if (failures.length > 0)
      throw new MigrationError(
        `${file}: ${failures.map(({ step, why }) => `${showStep(step)}: ${why}`).join("\n")}`,
      );
    const client = new ControlClient(control!);
    await client.json("PUT", "/snapshots/start");
    await client.json("DELETE", "/calls");
  };
}

function documentIn(file: string, text: string): Document {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new MigrationError(
      `Expected a saved state, a file of selvedge import or a seed in JSON, but ${file} is none: ${(error as Error).message}`,
    );
  }
  return Object.hasOwn(Object(content), "selvedge_import") ? readDocument(file) : documentOfSeed(file, text);
}
