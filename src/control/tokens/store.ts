import type { Read, Write } from "../../platform/storage/storage.ts";
import type { ApiToken } from "./tokens.ts";
import type { Policy } from "../access/policies.ts";

type TokenRow = Awaited<ReturnType<typeof selectRow>>;
const selectRow = (read: Read) => read.selectFrom("api_tokens").selectAll().executeTakeFirstOrThrow();

const toToken = (row: TokenRow): ApiToken => ({
  id: row.id,
  ownerKind: row.owner_kind,
  ownerId: row.owner_id,
  name: row.name,
  status: row.status,
  policies: JSON.parse(row.policies) as Policy[],
  condition: row.condition === null ? null : (JSON.parse(row.condition) as ApiToken["condition"]),
  secretHash: row.secret_hash,
  notBefore: row.not_before,
  expiresOn: row.expires_on,
  issuedOn: row.issued_on,
  modifiedOn: row.modified_on,
  lastUsedOn: row.last_used_on,
});

const columns = (token: ApiToken) => ({
  name: token.name,
  status: token.status,
  policies: JSON.stringify(token.policies),
  condition: token.condition === null ? null : JSON.stringify(token.condition),
  secret_hash: token.secretHash,
  not_before: token.notBefore,
  expires_on: token.expiresOn,
  modified_on: token.modifiedOn,
  last_used_on: token.lastUsedOn,
});

export async function findByHash(read: Read, secretHash: string): Promise<ApiToken | undefined> {
  const row = await read
    .selectFrom("api_tokens")
    .selectAll()
    .where("secret_hash", "=", secretHash)
    .executeTakeFirst();
  return row && toToken(row);
}

export async function findById(read: Read, id: string): Promise<ApiToken | undefined> {
  const row = await read.selectFrom("api_tokens").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toToken(row);
}

/** Reads tokens of any owner by id and locks them until the transaction ends. */
export async function lock(
  trx: Write,
  engine: "sqlite" | "postgres",
  ids: readonly string[],
): Promise<Map<string, ApiToken>> {
  if (ids.length === 0) return new Map();
  const rows = await trx
    .selectFrom("api_tokens")
    .selectAll()
    .where("id", "in", ids)
    .orderBy("id") // one lock order for all transactions, so that none deadlock
    .$if(engine === "postgres", (query) => query.forUpdate())
    .execute();
  return new Map(rows.map((row) => [row.id, toToken(row)]));
}

export async function list(
  read: Read,
  ownerId: string,
  page: { page: number; per_page: number; direction: "asc" | "desc" },
): Promise<{ tokens: ApiToken[]; totalCount: number }> {
  const owned = read.selectFrom("api_tokens").where("owner_id", "=", ownerId);
  const rows = await owned
    .selectAll()
    .orderBy("issued_on", page.direction)
    .orderBy("id", page.direction)
    .limit(page.per_page)
    .offset((page.page - 1) * page.per_page)
    .execute();
  const { count } = await owned
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return { tokens: rows.map(toToken), totalCount: count };
}

/** The number of tokens that are over. */
export async function countExpired(read: Read, now: number): Promise<number> {
  const { count } = await read
    .selectFrom("api_tokens")
    .where("expires_on", "<=", now)
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

export async function insert(trx: Write, token: ApiToken): Promise<void> {
  await trx
    .insertInto("api_tokens")
    .values({
      id: token.id,
      owner_kind: token.ownerKind,
      owner_id: token.ownerId,
      issued_on: token.issuedOn,
      ...columns(token),
    })
    .execute();
}

export async function update(trx: Write, token: ApiToken): Promise<void> {
  await trx.updateTable("api_tokens").set(columns(token)).where("id", "=", token.id).execute();
}

export async function touch(trx: Write, id: string, lastUsedOn: number): Promise<void> {
  await trx.updateTable("api_tokens").set({ last_used_on: lastUsedOn }).where("id", "=", id).execute();
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("api_tokens").where("id", "=", id).execute();
}
