import type { Command } from "commander";
import { errorTextOf, firstAccount } from "./workflow.ts";
import { print } from "./output.ts";

interface ObjectsOptions {
  api: string;
  token?: string;
  account?: string;
  json?: boolean;
}
interface Namespace {
  id: string;
  script: string;
  class: string;
  use_sqlite: boolean;
}
interface StoredObject {
  id: string;
  storedBytes: number;
}
interface Usage extends Namespace {
  objects: number;
  stored_bytes: number;
}

const pageMax = 10_000;

/** `objects [namespace]`: Durable Objects and their sizes, from the API of a running server. */
export function registerObjectsCommand(program: Command): void {
  program
    .command("objects [namespace]")
    .description(
      "list the namespaces of Durable Objects of an account, or the objects of one, with their sizes",
    )
    .option(
      "--api <url>",
      "URL of its management API",
      process.env["SELVEDGE_API"] ?? "http://127.0.0.1:8787/client/v4",
    )
    .option("--token <token>", "an API token (default: SELVEDGE_API_TOKEN)")
    .option("--account <id>", "the account id (default: the token's first account)")
    .option("--json", "print JSON")
    .action(async (namespace: string | undefined, options: ObjectsOptions) => {
      const read = await reader(options);
      const found = namespace === undefined ? await usages(read) : await objectsOf(read, namespace);
      const text =
        options.json === true
          ? JSON.stringify(found, null, 2)
          : namespace === undefined
            ? namespaceTable(found as Usage[])
            : objectTable(found as StoredObject[]);
      print(text);
    });
}

interface Page<T> {
  result: T[];
  result_info?: { cursor?: string; total_pages?: number };
}
/** Reads a page below the account's namespaces of objects. */
type Read = <T>(path: string) => Promise<Page<T>>;

async function reader({ api, token, account }: ObjectsOptions): Promise<Read> {
  const value = token ?? process.env["SELVEDGE_API_TOKEN"];
  if (value === undefined)
    throw new Error("Expected an API token in --token or SELVEDGE_API_TOKEN but received none");
  const headers = { authorization: `Bearer ${value}` };
  const id = account ?? (await firstAccount(api, headers));
  return async <T>(path: string) => {
    const response = await fetch(`${api}/accounts/${id}/workers/durable_objects/namespaces${path}`, {
      headers,
    });
    if (!response.ok) throw new Error(await errorTextOf(response));
    return (await response.json()) as Page<T>;
  };
}

async function usages(read: Read): Promise<Usage[]> {
  const found: Usage[] = [];
  for (let page = 1, pages = 1; page <= pages; page++) {
    const { result, result_info } = await read<Namespace>(`?page=${page}&per_page=1000`);
    pages = result_info?.total_pages ?? 1;
    for (const namespace of result) {
      const objects = await objectsOf(read, namespace.id);
      const bytes = objects.reduce((sum, { storedBytes }) => sum + storedBytes, 0);
      found.push({ ...namespace, objects: objects.length, stored_bytes: bytes });
    }
  }
  return found;
}

async function objectsOf(read: Read, namespace: string): Promise<StoredObject[]> {
  const found: StoredObject[] = [];
  let cursor = "";
  do {
    const after = cursor === "" ? "" : `&cursor=${cursor}`;
    const page = await read<StoredObject>(
      `/${encodeURIComponent(namespace)}/objects?limit=${pageMax}${after}`,
    );
    for (const { id, storedBytes } of page.result) found.push({ id, storedBytes });
    cursor = page.result_info?.cursor ?? "";
  } while (cursor !== "");
  return found;
}

const kilobytes = (bytes: number): string => `${Math.ceil(bytes / 1024)} KiB`;

function namespaceTable(found: readonly Usage[]): string {
  if (found.length === 0) return "There are no namespaces of Durable Objects.";
  return found
    .map(
      ({ id, script, class: name, objects, stored_bytes }) =>
        `${id}  ${script} ${name}  ${objects} ${objects === 1 ? "object" : "objects"}  ${kilobytes(stored_bytes)}`,
    )
    .join("\n");
}

function objectTable(found: readonly StoredObject[]): string {
  if (found.length === 0) return "The namespace has no objects with stored data.";
  return found.map(({ id, storedBytes }) => `${id}  ${kilobytes(storedBytes)}`).join("\n");
}
