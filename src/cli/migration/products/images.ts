import { z } from "zod";
import { cursorPagesOf, objectsIn } from "../account/lists.ts";
import { path } from "../account/path.ts";
import { bytesOf, BytesSchema, describeBytes } from "../bytes.ts";
import { product } from "../product.ts";

const options = z.object({
  fit: z.string().max(32),
  width: z.number(),
  height: z.number(),
  metadata: z.string().max(32),
});

/** Named sizes of pictures. */
export const imageVariant = product({
  name: "image_variant",
  group: "images",
  scope: "account",
  schema: z.object({
    id: z.string().min(1).max(99),
    options,
    neverRequireSignedURLs: z.boolean().default(false),
  }),
  key: ({ id }) => id,
  async *read({ account }) {
    const { result } = await account.client.get(path`/accounts/${account.accountId}/images/v1/variants`);
    const { variants } = (result ?? {}) as { variants?: Record<string, unknown> };
    for (const value of objectsIn(Object.values(variants ?? {}))) yield { id: String(value["id"]), value };
  },
  async write({ account }, { id, ...others }, before) {
    const all = path`/accounts/${account.accountId}/images/v1/variants`;
    if (before === undefined) await account.client.send("POST", all, { id, ...others });
    else await account.client.send("PATCH", all + path`/${id}`, others);
  },
  async remove({ account }, { value: { id } }) {
    await account.client.send("DELETE", path`/accounts/${account.accountId}/images/v1/variants/${id}`);
  },
});

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Pictures, with their bytes. A picture with a generated id cannot keep it, so it stays behind. */
export const image = product({
  name: "image",
  group: "images",
  scope: "account",
  schema: z.object({
    id: z.string().min(1).max(1024),
    filename: z.string().max(1024).nullable().default(null),
    meta: z
      .record(z.string(), z.unknown())
      .nullish()
      .transform((meta) => meta ?? {}),
    requireSignedURLs: z.boolean().default(false),
    creator: z.string().max(1024).nullable().default(null),
    content: BytesSchema,
  }),
  key: ({ id }) => id,
  async *read({ account, leaveOut }) {
    const generated: string[] = [];
    const all = path`/accounts/${account.accountId}/images/v2`;
    const token = (_: unknown, result: unknown): unknown =>
      (result as { continuation_token?: unknown } | null)?.continuation_token;
    const imagesIn = (result: unknown): Record<string, unknown>[] =>
      objectsIn((result as { images?: unknown } | null)?.images);
    const listed = await cursorPagesOf(
      account.client,
      `${all}?per_page=1000`,
      "continuation_token",
      token,
      imagesIn,
    );
    for (const each of listed) {
      const id = String(each["id"]);
      if (each["draft"] === true) continue;
      if (uuidPattern.test(id)) {
        generated.push(id);
        continue;
      }
      const { body } = await account.client.bytes(path`/accounts/${account.accountId}/images/v1/${id}/blob`);
      yield { id, value: { ...each, content: describeBytes(body) } };
    }
    leaveOut(generated, "an upload cannot set a generated id: upload them again with ids of your own");
  },
  async write({ account }, { id, filename, meta, requireSignedURLs, creator, content }, before) {
    const all = path`/accounts/${account.accountId}/images/v1`;
    const isSameFile =
      before?.value.filename === filename &&
      JSON.stringify(before?.value.content) === JSON.stringify(content);
    if (before !== undefined && isSameFile) {
      const change = { metadata: meta, requireSignedURLs, ...(creator === null ? {} : { creator }) };
      await account.client.send("PATCH", all + path`/${id}`, change);
      return;
    }
    if (before !== undefined) await account.client.send("DELETE", all + path`/${id}`);
    const form = new FormData();
    form.set("id", id);
    form.set("metadata", JSON.stringify(meta));
    form.set("requireSignedURLs", String(requireSignedURLs));
    if (creator !== null) form.set("creator", creator);
    form.set("file", new File([bytesOf(content)], filename ?? "image"));
    await account.client.send("POST", all, form);
  },
  async remove({ account }, { id }) {
    await account.client.send("DELETE", path`/accounts/${account.accountId}/images/v1/${id ?? ""}`);
  },
});
