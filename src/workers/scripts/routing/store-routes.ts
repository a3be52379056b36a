import type { Read, Write } from "../../../platform/storage/storage.ts";
import type { Domain } from "./domains.ts";
import type { ScriptRoute } from "./routes.ts";

const toRoute = (row: {
  id: string;
  zone_id: string;
  pattern: string;
  script: string | null;
}): ScriptRoute => ({
  id: row.id,
  zoneId: row.zone_id,
  pattern: row.pattern,
  script: row.script,
});

export async function listRoutes(read: Read, zoneId?: string): Promise<ScriptRoute[]> {
  const query = read.selectFrom("worker_routes").selectAll().orderBy("pattern");
  return (await (zoneId === undefined ? query : query.where("zone_id", "=", zoneId)).execute()).map(toRoute);
}

export async function putRoute(trx: Write, route: ScriptRoute): Promise<void> {
  const columns = { pattern: route.pattern, script: route.script };
  await trx
    .insertInto("worker_routes")
    .values({ id: route.id, zone_id: route.zoneId, ...columns })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function removeRoutes(trx: Write, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await trx.deleteFrom("worker_routes").where("id", "in", ids).execute();
}

export async function listDomains(read: Read): Promise<Domain[]> {
  const rows = await read.selectFrom("worker_domains").selectAll().orderBy("hostname").execute();
  return rows.map((row) => ({
    id: row.id,
    accountId: row.account_id,
    zoneId: row.zone_id,
    hostname: row.hostname,
    service: row.service,
    certId: row.cert_id,
  }));
}

export async function putDomain(trx: Write, domain: Domain): Promise<void> {
  await trx
    .insertInto("worker_domains")
    .values({
      id: domain.id,
      account_id: domain.accountId,
      zone_id: domain.zoneId,
      hostname: domain.hostname,
      service: domain.service,
      cert_id: domain.certId,
    })
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet({ zone_id: domain.zoneId, service: domain.service }),
    )
    .execute();
}

export async function removeDomains(trx: Write, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await trx.deleteFrom("worker_domains").where("id", "in", ids).execute();
}

export async function listSubdomains(read: Read): Promise<{ accountId: string; subdomain: string | null }[]> {
  const rows = await read.selectFrom("account_subdomains").selectAll().execute();
  return rows.map(({ account_id, subdomain }) => ({ accountId: account_id, subdomain }));
}

export async function putSubdomain(trx: Write, accountId: string, subdomain: string | null): Promise<void> {
  await trx
    .insertInto("account_subdomains")
    .values({ account_id: accountId, subdomain })
    .onConflict((conflict) => conflict.column("account_id").doUpdateSet({ subdomain }))
    .execute();
}

/** Gives an account its first subdomain, unless a concurrent transaction has taken the name or given it another. */
export async function addSubdomain(trx: Write, accountId: string, subdomain: string): Promise<void> {
  await trx
    .insertInto("account_subdomains")
    .values({ account_id: accountId, subdomain })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
