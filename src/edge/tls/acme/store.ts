import type { Read, Write } from "../../../platform/storage/storage.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** A challenge of an authority: content over HTTP at a host, or a TXT record. */
export interface Challenge {
  token: string;
  zoneId: string;
  kind: "http" | "dns";
  /** The host, or the name of the TXT record. */
  name: string;
  value: string;
}

export async function insertChallenge(trx: Write, challenge: Challenge): Promise<void> {
  const { token, zoneId: zone_id, kind, name, value } = challenge;
  await trx
    .insertInto("acme_challenges")
    .values({ token, zone_id, kind, name, value, created_on: clock.now() })
    .onConflict((conflict) => conflict.column("token").doNothing())
    .execute();
}

export async function removeChallenge(trx: Write, token: string): Promise<void> {
  await trx.deleteFrom("acme_challenges").where("token", "=", token).execute();
}

/** Removes challenges of nodes that have died. */
export async function removeStaleChallenges(trx: Write, beforeMs: number): Promise<void> {
  await trx.deleteFrom("acme_challenges").where("created_on", "<", beforeMs).execute();
}

export async function findHttpChallenge(
  read: Read,
  token: string,
  host: string,
): Promise<{ zoneId: string; value: string } | undefined> {
  const row = await read
    .selectFrom("acme_challenges")
    .select(["zone_id", "value"])
    .where("token", "=", token)
    .where("kind", "=", "http")
    .where("name", "=", host)
    .executeTakeFirst();
  return row && { zoneId: row.zone_id, value: row.value };
}

/** The key of the account with an authority: the existing one, otherwise the given one, which is stored. */
export async function accountKey(trx: Write, directory: string, newKey: string): Promise<string> {
  await trx
    .insertInto("acme_accounts")
    .values({ directory, private_key: newKey })
    .onConflict((conflict) => conflict.column("directory").doNothing())
    .execute();
  const row = await trx
    .selectFrom("acme_accounts")
    .select("private_key")
    .where("directory", "=", directory)
    .executeTakeFirstOrThrow();
  return row.private_key;
}
