import { inTurnsOfStarts } from "../../platform/storage/dialects.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { newSecret } from "../access/secret.ts";

const key = "pepper";

/** Returns the installation's secret, the key of every hashed secret. The first start creates it. */
export async function ensurePepper(storage: Storage): Promise<string> {
  return (
    (await find(storage)) ?? inTurnsOfStarts(storage, async () => (await find(storage)) ?? create(storage))
  );
}

async function find(storage: Storage): Promise<string | undefined> {
  const row = await storage.read.selectFrom("meta").select("value").where("key", "=", key).executeTakeFirst();
  return row?.value;
}

async function create(storage: Storage): Promise<string> {
  const value = newSecret();
  await storage.write(async (trx) => {
    await trx.insertInto("meta").values({ key, value }).execute();
  });
  return value;
}
