import { z } from "zod";
import { cursorPagesOf, pagesOf } from "../account/lists.ts";
import { path } from "../account/path.ts";
import { CallRefused } from "../failure.ts";
import { bytesOf, BytesSchema, describeBytes } from "../bytes.ts";
import { product } from "../product.ts";

/** Key-value namespaces. */
export const kvNamespace = product({
  name: "kv_namespace",
  group: "kv",
  scope: "account",
  schema: z.object({ title: z.string().min(1).max(512) }),
  key: ({ title }) => title,
  async *read({ account }) {
    const all = path`/accounts/${account.accountId}/storage/kv/namespaces`;
    for (const { id, title } of await pagesOf(account.client, all, 100))
      yield { id: String(id), value: { title } };
  },
  async write({ account }, { title }) {
    await account.client.send("POST", path`/accounts/${account.accountId}/storage/kv/namespaces`, { title });
    account.forget("kv_namespace");
  },
  async remove({ account }, { id }) {
    await account.client.send(
      "DELETE",
      path`/accounts/${account.accountId}/storage/kv/namespaces/${id ?? ""}`,
    );
    account.forget("kv_namespace");
  },
});

/** The API refuses an expiration in less time. */
const expirationSecondsMin = 60;

/** The values of keys, with their metadata. */
export const kvValue = product({
  name: "kv_value",
  group: "kv",
  scope: "account",
  schema: z.object({
    namespace: z.string().min(1).max(512),
    key: z.string().min(1).max(512),
    value: BytesSchema,
    metadata: z.unknown().default(null),
    /** Seconds since 1970. */
    expiration: z.number().nullable().default(null),
  }),
  key: ({ namespace, key }) => JSON.stringify([namespace, key]),
  async *read({ account, leaveOut }) {
    const vanished: string[] = [];
    for (const [id, namespace] of await account.namesOf("kv_namespace")) {
      const of = path`/accounts/${account.accountId}/storage/kv/namespaces/${id}`;
      const keys = await cursorPagesOf(
        account.client,
        `${of}/keys?limit=1000`,
        "cursor",
        ({ cursor }) => cursor,
      );
      for (const { name, metadata, expiration } of keys) {
        const key = String(name);
        try {
          const { body } = await account.client.bytes(of + path`/values/${key}`);
          yield { id: key, value: { namespace, key, value: describeBytes(body), metadata, expiration } };
        } catch (error) {
          if (!(error instanceof CallRefused) || error.status !== 404) throw error;
          vanished.push(`${namespace}/${key}`);
        }
      }
    }
    leaveOut(vanished, "they expired or were deleted during the import");
  },
  async write({ account }, { namespace, key, value, metadata, expiration }) {
    const id = await account.idOf("kv_namespace", namespace);
    const form = new FormData();
    form.set("value", new File([bytesOf(value)], "value"));
    if (metadata !== null) form.set("metadata", JSON.stringify(metadata));
    const query = expiration === null ? "" : `?expiration=${expiration}`;
    const to = path`/accounts/${account.accountId}/storage/kv/namespaces/${id}/values/${key}`;
    await account.client.send("PUT", to + query, form);
  },
  async remove({ account }, { value: { namespace, key } }) {
    const id = await account.idOf("kv_namespace", namespace);
    const to = path`/accounts/${account.accountId}/storage/kv/namespaces/${id}/values/${key}`;
    await account.client.send("DELETE", to);
  },
  isOver: ({ expiration }, nowMs) => expiration !== null && expiration < nowMs / 1000 + expirationSecondsMin,
});
