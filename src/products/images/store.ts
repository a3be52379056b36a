import type { Selectable } from "kysely";
import type { ImagesTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { ImageContent, Focus, Image } from "./image.ts";

const toImage = (row: Selectable<ImagesTable>): Image => ({
  accountId: row.account_id,
  id: row.id,
  filename: row.filename,
  uploadedOn: row.uploaded_on,
  requireSignedUrls: row.require_signed_urls === 1,
  meta: JSON.parse(row.meta) as Record<string, unknown>,
  creator: row.creator,
  // The token hash is kept after the upload, so that a second use is distinguished from a wrong token.
  draft: row.expires_on === null ? null : { expiresOn: row.expires_on, tokenHash: row.upload_token_hash! },
  content: row.content === null ? null : (JSON.parse(row.content) as ImageContent),
  focus: row.focus === null ? null : (JSON.parse(row.focus) as Focus),
});

const columns = (image: Image) => ({
  filename: image.filename,
  uploaded_on: image.uploadedOn,
  require_signed_urls: image.requireSignedUrls ? (1 as const) : (0 as const),
  meta: JSON.stringify(image.meta),
  creator: image.creator,
  upload_token_hash: image.draft?.tokenHash ?? null,
  expires_on: image.draft?.expiresOn ?? null,
  content: image.content === null ? null : JSON.stringify(image.content),
  focus: image.focus === null ? null : JSON.stringify(image.focus),
});

export async function find(read: Read, accountId: string, id: string): Promise<Image | undefined> {
  const row = await read
    .selectFrom("images")
    .selectAll()
    .where("account_id", "=", accountId)
    .where("id", "=", id)
    .executeTakeFirst();
  return row && toImage(row);
}

export async function findDraft(read: Read, tokenHash: string): Promise<Image | undefined> {
  const row = await read
    .selectFrom("images")
    .selectAll()
    .where("upload_token_hash", "=", tokenHash)
    .executeTakeFirst();
  return row && toImage(row);
}

/** An expired draft frees its id before the sweep removes it. */
export async function insert(trx: Write, image: Image): Promise<void> {
  await trx
    .deleteFrom("images")
    .where("account_id", "=", image.accountId)
    .where("id", "=", image.id)
    .where("expires_on", "<=", image.uploadedOn)
    .where("content", "is", null)
    .execute();
  await trx
    .insertInto("images")
    .values({ account_id: image.accountId, id: image.id, ...columns(image) })
    .execute();
}

/** Editable fields of an image. Undefined fields stay, also during concurrent edits. */
export interface ImageEdit {
  meta?: Record<string, unknown> | undefined;
  requireSignedUrls?: boolean | undefined;
  creator?: string | null | undefined;
}

/** Returns the updated image; undefined when it was deleted. */
export async function edit(
  trx: Write,
  accountId: string,
  id: string,
  { meta, requireSignedUrls, creator }: ImageEdit,
): Promise<Image | undefined> {
  const row = await trx
    .updateTable("images")
    .set((eb) => ({
      meta: meta === undefined ? eb.ref("meta") : JSON.stringify(meta),
      require_signed_urls:
        requireSignedUrls === undefined ? eb.ref("require_signed_urls") : requireSignedUrls ? 1 : 0,
      creator: creator === undefined ? eb.ref("creator") : creator,
    }))
    .where("account_id", "=", accountId)
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirst();
  return row && toImage(row);
}

/** Adds content to a draft. Undefined when another upload came first, or the draft was deleted. */
export async function complete(
  trx: Write,
  { accountId, id, draft }: Image,
  { filename, uploadedOn, content }: Pick<Image, "filename" | "uploadedOn" | "content">,
): Promise<Image | undefined> {
  const row = await trx
    .updateTable("images")
    .set({ filename, uploaded_on: uploadedOn, content: JSON.stringify(content), expires_on: null })
    .where("account_id", "=", accountId)
    .where("id", "=", id)
    .where("upload_token_hash", "=", draft!.tokenHash)
    .where("content", "is", null)
    .returningAll()
    .executeTakeFirst();
  return row && toImage(row);
}

/** Another image may have taken the id in the meantime, so the bytes are compared too. */
export async function setFocus(trx: Write, { accountId, id, content }: Image, focus: Focus): Promise<void> {
  await trx
    .updateTable("images")
    .set({ focus: JSON.stringify(focus) })
    .where("account_id", "=", accountId)
    .where("id", "=", id)
    .where("content", "=", JSON.stringify(content))
    .execute();
}

/** Returns the deleted row, so that only one of two callers gets it. */
export async function remove(trx: Write, accountId: string, id: string): Promise<Image | undefined> {
  const row = await trx
    .deleteFrom("images")
    .where("account_id", "=", accountId)
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirst();
  return row && toImage(row);
}

/** Removes and returns expired drafts. Completed images have no expiry. */
export async function removeExpired(trx: Write, now: number): Promise<{ accountId: string; id: string }[]> {
  const rows = await trx
    .deleteFrom("images")
    .where("expires_on", "<=", now)
    .where("content", "is", null)
    .returning(["account_id", "id"])
    .execute();
  return rows.map((row) => ({ accountId: row.account_id, id: row.id }));
}

export async function hasAccount(read: Read, accountId: string): Promise<boolean> {
  const row = await read.selectFrom("accounts").select("id").where("id", "=", accountId).executeTakeFirst();
  return row !== undefined;
}

/** Records a blob that no image references. */
export async function noteOrphan(trx: Write, blobKey: string, notedOn: number): Promise<void> {
  await trx
    .insertInto("image_orphans")
    .values({ blob_key: blobKey, noted_on: notedOn })
    .onConflict((conflict) => conflict.column("blob_key").doNothing())
    .execute();
}

export async function forgetOrphan(trx: Write, blobKey: string): Promise<void> {
  await trx.deleteFrom("image_orphans").where("blob_key", "=", blobKey).execute();
}

export async function orphans(read: Read, notedBefore: number): Promise<string[]> {
  const rows = await read
    .selectFrom("image_orphans")
    .select("blob_key")
    .where("noted_on", "<", notedBefore)
    .limit(1000)
    .execute();
  return rows.map((row) => row.blob_key);
}

export async function count(read: Read, accountId: string, creator?: string | null): Promise<number> {
  const { total } = await listed(read, accountId, creator)
    .select((eb) => eb.fn.countAll<number | string>().as("total"))
    .executeTakeFirstOrThrow();
  return Number(total);
}

export async function page(
  read: Read,
  accountId: string,
  query: { creator?: string | null | undefined; offset: number; limit: number },
): Promise<Image[]> {
  const rows = await listed(read, accountId, query.creator)
    .selectAll()
    .orderBy("uploaded_on", "desc")
    .orderBy("id", "desc")
    .offset(query.offset)
    .limit(query.limit)
    .execute();
  return rows.map(toImage);
}

export interface ListCursor {
  uploadedOn: number;
  id: string;
}

/** The images after a cursor. Concurrent inserts and deletes do not shift the page. */
export async function after(
  read: Read,
  accountId: string,
  query: {
    creator?: string | null | undefined;
    order: "asc" | "desc";
    cursor?: ListCursor | undefined;
    limit: number;
  },
): Promise<Image[]> {
  const comparison = query.order === "asc" ? ">" : "<";
  const { cursor } = query;
  let rows = listed(read, accountId, query.creator).selectAll();
  if (cursor !== undefined) {
    rows = rows.where((eb) =>
      eb.or([
        eb("uploaded_on", comparison, cursor.uploadedOn),
        eb.and([eb("uploaded_on", "=", cursor.uploadedOn), eb("id", comparison, cursor.id)]),
      ]),
    );
  }
  const found = await rows
    .orderBy("uploaded_on", query.order)
    .orderBy("id", query.order)
    .limit(query.limit)
    .execute();
  return found.map(toImage);
}

/** Excludes drafts. A null creator selects images without one. */
function listed(read: Read, accountId: string, creator: string | null | undefined) {
  const images = read
    .selectFrom("images")
    .where("account_id", "=", accountId)
    .where("content", "is not", null);
  if (creator === undefined) return images;
  return creator === null ? images.where("creator", "is", null) : images.where("creator", "=", creator);
}
