import { inTurnsOfStarts } from "../dialects.ts";
import type { Storage } from "../storage.ts";

/** A value that the nodes on PostgreSQL share, by its name; undefined if there is none. Backups do not have it. */
export async function sharedValue(storage: Storage, name: string): Promise<string | undefined> {
  const rows = storage.read.selectFrom("node_values").select("value").where("name", "=", name);
  return (await rows.executeTakeFirst())?.value;
}

/** Stores such a value, which must be new. */
export async function shareValue(storage: Storage, name: string, value: string): Promise<void> {
  await storage.write((trx) => trx.insertInto("node_values").values({ name, value }).execute());
}

/** Such a value, which the first node makes. */
export async function sharedValueOr(storage: Storage, name: string, make: () => string): Promise<string> {
  const known = await sharedValue(storage, name);
  if (known !== undefined) return known;
  return inTurnsOfStarts(storage, async () => {
    const found = await sharedValue(storage, name);
    if (found !== undefined) return found;
    const value = make();
    await shareValue(storage, name, value);
    return value;
  });
}
