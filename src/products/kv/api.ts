import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { pageQuery, paginate } from "../../control/api/pagination.ts";
import { kvErrorCodes } from "./api-errors.ts";
import { bulkOperations } from "./api-bulk.ts";
import { valueOperations } from "./api-values.ts";
import { kvLimits } from "./limits.ts";
import type { KvNamespace, KvNamespaces } from "./kv.ts";
import { edit, namespaceOf, namespacePath, namespacesPath, read } from "./namespace-call.ts";

/** The services that these operations use. */
interface Services {
  kv: KvNamespaces;
}

const { listOperation, operation } = operationsFor<Services>(kvErrorCodes);

const NamespaceSchema = z
  .object({ id: z.string(), title: z.string(), supports_url_encoding: z.literal(true) })
  .meta({ id: "KvNamespace" });
const NamespaceInputSchema = z.strictObject({
  title: z
    .string()
    .min(1)
    .max(kvLimits.titleCharactersMax)
    .refine((title) => !/\p{Cc}/u.test(title), { error: "text without control characters" }),
});

const namespaceResource = ({ id, title }: KvNamespace): z.input<typeof NamespaceSchema> => ({
  id,
  title,
  supports_url_encoding: true,
});

const namespaceOperations = [
  listOperation({
    id: "kv_namespace_list",
    method: "GET",
    path: namespacesPath,
    summary: "List key-value namespaces",
    ...read,
    query: pageQuery({ default: 20, max: 1000 }).extend({
      order: z.enum(["id", "title"]).default("id"),
      direction: z.enum(["asc", "desc"]).default("asc"),
    }),
    result: NamespaceSchema,
    async handle({ account, query, services }) {
      const all = (await services.kv.listNamespaces(account.id)).map(namespaceResource);
      const sign = query.direction === "asc" ? 1 : -1;
      all.sort((a, b) => (a[query.order] < b[query.order] ? -sign : sign));
      return paginate(all, query);
    },
  }),
  operation({
    id: "kv_namespace_create",
    method: "POST",
    path: namespacesPath,
    summary: "Create a key-value namespace",
    ...edit,
    body: NamespaceInputSchema,
    result: NamespaceSchema,
    handle: async ({ account, body, services }) =>
      namespaceResource(await services.kv.createNamespace(account.id, body.title)),
  }),
  operation({
    id: "kv_namespace_get",
    method: "GET",
    path: namespacePath,
    summary: "Get a key-value namespace",
    ...read,
    result: NamespaceSchema,
    handle: async (call) => namespaceResource(await namespaceOf(call)),
  }),
  operation({
    id: "kv_namespace_put",
    method: "PUT",
    path: namespacePath,
    summary: "Rename a key-value namespace",
    ...edit,
    body: NamespaceInputSchema,
    result: NamespaceSchema,
    handle: async (call) =>
      namespaceResource(await call.services.kv.renameNamespace(await namespaceOf(call), call.body.title)),
  }),
  operation({
    id: "kv_namespace_delete",
    method: "DELETE",
    path: namespacePath,
    summary: "Delete a key-value namespace with everything in it",
    ...edit,
    result: z.null(),
    async handle(call) {
      await call.services.kv.deleteNamespace(await namespaceOf(call));
      return null;
    },
  }),
];

export const kvOperations = [...namespaceOperations, ...valueOperations, ...bulkOperations];
