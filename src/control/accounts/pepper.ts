import type { Storage } from "../../platform/storage/storage.ts";
import { newSecret } from "../access/secret.ts";

/** Returns the installation's secret, the key of every hashed secret. The first start creates it. */
export async function ensurePepper(storage: Storage): Promise<string> {
  const key = "pepper";
  await storage.write(async (trx) => {
    await trx
      .insertInto("meta")
      .values({ key, value: newSecret() })
      .onConflict((conflict) => conflict.column("key").doNothing())
      .execute();
  });
  const row = await storage.read
    .selectFrom("meta")
    .select("value")
    .where("key", "=", key)
    .executeTakeFirstOrThrow();
  return row.value;
}
