import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { isSavedState } from "../../platform/storage/under-test/saved-image.ts";
import { ApiClient } from "../../testkit/api-client.ts";
import { ControlClient } from "../../testkit/control-client.ts";
import type { SeededAccess } from "../../testkit/seeded-access.ts";
import type { Ready } from "../../ready.ts";
import { apply, showStep } from "../migration/apply.ts";
import { openAccount } from "../migration/command-accounts.ts";
import { readDocument, type Document } from "../migration/document.ts";
import { MigrationError } from "../migration/failure.ts";
import { readSeed, type SeededPlatform } from "./seed.ts";
import { makeTokens } from "./seeded-tokens.ts";

/**
 * Fills an empty platform during its start. The resulting state is the one that a reset restores. The token is the
 * owner's.
 */
export type PlatformFilling = (ready: Ready, token: string) => Promise<SeededAccess>;

/**
 * Reads a file of `selvedge import` or a seed, whose content is created through the operations of the API; undefined for a
 * saved state, which is the database itself. Throws a MigrationError if the file is invalid.
 */
export async function initialStateOf(file: string): Promise<PlatformFilling | undefined> {
  const bytes = readFileSync(file);
  if (isSavedState(bytes)) return undefined;
  const seed = /\.[cm]?[jt]s$/.test(file) ? await moduleSeed(file) : contentOf(file, bytes.toString());
  return async (ready, token) => {
    const { api: baseUrl, account_id: accountId, control } = ready;
    const api = new ApiClient(baseUrl, token);
    const client = new ControlClient(control!);
    const { now } = await client.json<{ now: string }>("GET", "/clock");
    await create(file, seed.document, { baseUrl, accountId, token });
    const access = { tokens: await makeTokens(api, accountId, seed, Date.parse(now)), accounts: {} as Named };
    for (const [name, content] of Object.entries(seed.accounts)) {
      const made = await api.account(name, {});
      await create(file, content.document, { baseUrl, accountId: made.accountId, token: made.token });
      const tokens = await makeTokens(api, made.accountId, content, Date.parse(now));
      access.accounts[name] = { account_id: made.accountId, token: made.token, tokens };
    }
    await client.json("PUT", "/snapshots/start");
    await client.json("DELETE", "/calls");
    return access;
  };
}

type Named = NonNullable<SeededAccess["accounts"]>;

async function create(
  file: string,
  document: Document,
  at: { baseUrl: string; accountId: string; token: string },
): Promise<void> {
  const account = await openAccount(
    { name: "test", ...at, dns: undefined },
    document.zones.map(({ name }) => name),
    { callsPerSecond: 0 },
    true,
  );
  const { failures } = await apply(document, account, false, () => {});
  if (failures.length > 0)
    throw new MigrationError(
      `${file}: ${failures.map(({ step, why }) => `${showStep(step)}: ${why}`).join("\n")}`,
    );
}

/** The seed that is the default export of a module. */
async function moduleSeed(file: string): Promise<SeededPlatform> {
  let seed: unknown;
  try {
    ({ default: seed } = (await import(pathToFileURL(file).href)) as { default?: unknown });
  } catch (error) {
    throw new MigrationError(`The seed ${file} could not be loaded: ${(error as Error).message}`);
  }
  if (typeof seed !== "object" || seed === null)
    throw new MigrationError(`Expected a seed as the default export of ${file}`);
  return readSeed(file, JSON.stringify(seed), false);
}

function contentOf(file: string, text: string): SeededPlatform {
  if (/\.ya?ml$/.test(file))
    throw new MigrationError(
      `Expected a seed in JSON, or a module with a default export, but ${file} is YAML, which is not read`,
    );
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new MigrationError(
      `Expected a saved state, a file of selvedge import or a seed in JSON, but ${file} is none: ${(error as Error).message}`,
    );
  }
  if (!Object.hasOwn(Object(content), "selvedge_import")) return readSeed(file, text);
  const fail = (_: unknown, message: string): never => {
    throw new MigrationError(`${file}: ${message}`);
  };
  return { document: readDocument(file), tokens: {}, accounts: {}, fail };
}
