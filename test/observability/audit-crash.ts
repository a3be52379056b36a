import { serve, type ServerProcess } from "../helpers/process.ts";

const token = "audit-crash-token";
const environment = { SELVEDGE_API_TOKEN: token, SELVEDGE_API_RATE_LIMIT: "0" };
const clients = 4;

async function call(server: ServerProcess, method: string, path: string, body?: unknown) {
  const response = await fetch(`${server.ready.api}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as {
    result: never;
    result_info?: { cursors?: { after?: string }; total_pages?: number };
  };
}

interface Entry {
  resource: { id?: string };
  action: { type: string };
}

/** The ids that the audit log says exist: created and not deleted. */
async function audited(server: ServerProcess, zoneId: string): Promise<Set<string>> {
  const ids = new Set<string>();
  const query = `since=2020-01-01&before=2100-01-01&direction=asc&limit=1000&resource_product=dns_records&zone_id=${zoneId}`;
  let cursor = "";
  do {
    const path = `/accounts/${server.ready.account_id}/logs/audit?${query}&cursor=${cursor}`;
    const { result, result_info } = await call(server, "GET", path);
    for (const { resource, action } of result as Entry[]) {
      if (action.type === "create") ids.add(resource.id!);
      if (action.type === "delete") ids.delete(resource.id!);
    }
    cursor = result_info?.cursors?.after ?? "";
  } while (cursor !== "");
  return ids;
}

async function stored(server: ServerProcess, zoneId: string): Promise<Set<string>> {
  const { result } = await call(server, "GET", `/zones/${zoneId}/dns_records?per_page=50000`);
  return new Set((result as { id: string }[]).map(({ id }) => id));
}

/** On SQLite, the indexes of entries follow after so many. */
const unindexedMax = 250;

/** The entries after which the server is killed: soon, or when the indexes of the entries are being written. */
const anyMoment = (): number => 1 + Math.floor(Math.random() * 50);
const whileIndexing = (): number => unindexedMax - 2 + Math.floor(Math.random() * 8);

/**
 * Writes records from several clients, kills the server at a random moment, and compares the records with the
 * audit log after the next start. Every other round, the moment is close to that at which entries get their indexes,
 * if `killsWhileIndexing`. Returns the number of records that one side has alone, over all rounds, which must be 0, and
 * the number that both have.
 */
export async function auditAfterKills(
  args: readonly string[],
  rounds: number,
  killsWhileIndexing = false,
): Promise<{ apart: number; together: number }> {
  let server = await serve(args, environment);
  const zone = (await call(server, "POST", "/zones", { name: "crash.example" })).result as { id: string };
  let [apart, together] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    const running = server;
    const records = `/zones/${zone.id}/dns_records`;
    let entries = 0;
    const enough = killsWhileIndexing && round % 2 === 1 ? whileIndexing() : anyMoment();
    const entered = (): void => {
      if (++entries === enough) running.process.kill("SIGKILL");
    };
    await Promise.all(
      Array.from({ length: clients }, async (_, side) => {
        for (let i = 0; ; i++) {
          const body = { type: "TXT", name: `r-${round}-${side}-${i}`, content: '"x"', ttl: 60 };
          try {
            const { result } = await call(running, "POST", records, body);
            entered();
            if (i % 3 !== 2) continue;
            await call(running, "DELETE", `${records}/${(result as { id: string }).id}`);
            entered();
          } catch {
            return; // killed
          }
        }
      }),
    );
    await running.exited;
    server = await serve(args, environment);
    const [known, rows] = [await audited(server, zone.id), await stored(server, zone.id)];
    apart +=
      [...known].filter((id) => !rows.has(id)).length + [...rows].filter((id) => !known.has(id)).length;
    together = rows.size;
  }
  server.process.kill("SIGTERM");
  await server.exited;
  return { apart, together };
}
