import type { Selectable } from "kysely";
import type { RulesetsTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { RulesetPhase, Rule, Ruleset } from "./ruleset.ts";

const toRuleset = (row: Selectable<RulesetsTable>): Ruleset => ({
  id: row.id,
  zoneId: row.owner_id,
  kind: "zone",
  phase: row.phase as RulesetPhase,
  name: row.name,
  description: row.description,
  version: row.version,
  rules: JSON.parse(row.rules) as Rule[],
  lastUpdated: row.last_updated,
});

export async function loadAll(read: Read): Promise<Ruleset[]> {
  return (await read.selectFrom("rulesets").selectAll().execute()).map(toRuleset);
}

export async function listOfZone(read: Read, zoneId: string): Promise<Ruleset[]> {
  const rows = await read
    .selectFrom("rulesets")
    .selectAll()
    .where("owner_id", "=", zoneId)
    .orderBy("phase")
    .execute();
  return rows.map(toRuleset);
}

export async function find(read: Read, id: string): Promise<Ruleset | undefined> {
  const row = await read.selectFrom("rulesets").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toRuleset(row);
}

export async function put(trx: Write, ruleset: Ruleset): Promise<void> {
  const columns = {
    name: ruleset.name,
    description: ruleset.description,
    version: ruleset.version,
    rules: JSON.stringify(ruleset.rules),
    last_updated: ruleset.lastUpdated,
  };
  await trx
    .insertInto("rulesets")
    .values({
      id: ruleset.id,
      owner_kind: "zone",
      owner_id: ruleset.zoneId,
      kind: "zone",
      phase: ruleset.phase,
      ...columns,
    })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("rulesets").where("id", "=", id).execute();
}
