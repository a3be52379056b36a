import type { Storage } from "../../../platform/storage/storage.ts";
import type { RunLimits } from "../../runtime/run-context.ts";
import type { OutboundScript } from "../../runtime/run-parts.ts";

/** The data of a run that no request begins: the object's name, and a customer's last dispatch. */
export interface ActingOrigin {
  name?: string | undefined;
  jurisdiction?: string | undefined;
  limits?: Partial<RunLimits> | undefined;
  outbound?: OutboundScript | undefined;
}

/** When an object has to be asked for its alarm. */
export interface StoredAlarm {
  namespace: string;
  id: string;
  /** Milliseconds since 1970. */
  due: number;
  retries: number;
  origin: ActingOrigin;
}

const rowsMax = 500;

export async function loadAlarms({ read }: Storage): Promise<StoredAlarm[]> {
  const rows = await read.selectFrom("object_alarms").selectAll().execute();
  return rows.map((row) => ({
    namespace: row.namespace_id,
    id: row.object_id,
    due: row.due,
    retries: row.retries,
    origin: JSON.parse(row.origin) as ActingOrigin,
  }));
}

/** Writes alarms, and removes those that are undefined, in one transaction. Resolves when the transaction is on disk. */
export async function writeAlarms(
  storage: Storage,
  batch: ReadonlyMap<string, { namespace: string; id: string; alarm: StoredAlarm | undefined }>,
): Promise<void> {
  const all = [...batch.values()];
  await storage.write(async (trx) => {
    for (const { namespace, id, alarm } of all) {
      if (alarm !== undefined) continue;
      await trx
        .deleteFrom("object_alarms")
        .where("namespace_id", "=", namespace)
        .where("object_id", "=", id)
        .execute();
    }
    const namespaces = [...new Set(all.map(({ namespace }) => namespace))];
    const found = await trx
      .selectFrom("object_namespaces")
      .select("id")
      .where("id", "in", namespaces)
      .execute();
    const existing = new Set(found.map(({ id }) => id));
    const rows = all.flatMap(({ alarm }) =>
      alarm === undefined || !existing.has(alarm.namespace) ? [] : [rowOf(alarm)],
    );
    for (let i = 0; i < rows.length; i += rowsMax)
      await trx
        .insertInto("object_alarms")
        .values(rows.slice(i, i + rowsMax))
        .onConflict((conflict) =>
          conflict.columns(["namespace_id", "object_id"]).doUpdateSet((eb) => ({
            due: eb.ref("excluded.due"),
            retries: eb.ref("excluded.retries"),
            origin: eb.ref("excluded.origin"),
          })),
        )
        .execute();
  });
}

const rowOf = ({ namespace, id, due, retries, origin }: StoredAlarm) => ({
  namespace_id: namespace,
  object_id: id,
  due,
  retries,
  origin: JSON.stringify(origin),
});
