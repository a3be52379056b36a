import { z } from "zod";
import { operationsFor, type Call } from "../../control/api/operation.ts";
import { success } from "../../control/api/envelope.ts";
import { pageQuery, paginate } from "../../control/api/pagination.ts";
import { readManifest } from "../assets/asset.ts";
import { SessionInputSchema, SessionSchema, sessionBodyBytesMax } from "../assets/uploads/api.ts";
import { codeOperations } from "../scripts/versions/api-code.ts";
import { secretOperations } from "../scripts/api-secrets.ts";
import { settingsOperations } from "../scripts/api-settings.ts";
import {
  editAccess,
  nameOf,
  readAccess,
  scriptOf,
  tagFilter,
  type AnyCall,
  type ScriptCollection,
  type ScriptServices,
} from "../scripts/api-collection.ts";
import { ScriptSchema, scriptResource, TimeSchema } from "../scripts/resources.ts";
import type { Script, ScriptVersion } from "../scripts/script.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { ownerOf, type DispatchNamespace } from "../scripts/namespaces/namespaces.ts";
import type { Assets } from "../assets/assets.ts";
import { namespaceErrorCodes } from "./api-errors.ts";

const { listOperation, operation, rawOperation } = operationsFor<ScriptServices & { assets: Assets }>(
  namespaceErrorCodes,
);

const base = "/accounts/{account_id}/edge/dispatch/namespaces";
const one = `${base}/{namespace_name}`;
const read = { access: readAccess } as const;
const edit = { access: editAccess } as const;

const namespaceOf = ({ account, params, services }: AnyCall): DispatchNamespace =>
  services.namespaces.get(account.id, params["namespace_name"]!);

const collection: ScriptCollection = {
  id: "dispatch_script",
  path: `${one}/scripts`,
  noun: "customer's script",
  owner: (call) => ownerOf(namespaceOf(call)),
};

const NamespaceSchema = z
  .object({
    namespace_id: z.string(),
    namespace_name: z.string(),
    script_count: z.int(),
    trusted_workers: z.boolean(),
    created_on: TimeSchema,
    created_by: z.string(),
    modified_on: TimeSchema,
    modified_by: z.string(),
  })
  .meta({ id: "DispatchNamespace" });

const namespaceResource = (
  { services }: AnyCall,
  namespace: DispatchNamespace,
): z.input<typeof NamespaceSchema> => ({
  namespace_id: namespace.id,
  namespace_name: namespace.name,
  script_count: services.scripts.count(ownerOf(namespace)),
  trusted_workers: namespace.isTrusted,
  created_on: isoTime(namespace.createdOn),
  created_by: namespace.createdBy,
  modified_on: isoTime(namespace.modifiedOn),
  modified_by: namespace.modifiedBy,
});

const userOf = ({ actor }: AnyCall): string => actor.userId ?? actor.id;

const NamespaceEditSchema = z.strictObject({
  name: z.string().optional(),
  trusted_workers: z.boolean().optional(),
});

async function editNamespace(call: Call<unknown, z.output<typeof NamespaceEditSchema>, ScriptServices>) {
  const { name, trusted_workers: isTrusted } = call.body;
  const edited = {
    ...(name === undefined ? {} : { name }),
    ...(isTrusted === undefined ? {} : { isTrusted }),
  };
  return namespaceResource(
    call,
    await call.services.namespaces.edit(namespaceOf(call), edited, userOf(call)),
  );
}

const namespaceOperations = [
  operation({
    id: "dispatch_namespace_list",
    method: "GET",
    path: base,
    summary: "List dispatch namespaces by name",
    ...read,
    result: z.array(NamespaceSchema),
    handle: async (call) =>
      call.services.namespaces.list(call.account.id).map((namespace) => namespaceResource(call, namespace)),
  }),
  operation({
    id: "dispatch_namespace_create",
    method: "POST",
    path: base,
    summary: "Create a dispatch namespace",
    ...edit,
    body: z.strictObject({ name: z.string() }),
    result: NamespaceSchema,
    handle: async (call) =>
      namespaceResource(
        call,
        await call.services.namespaces.create(call.account.id, call.body.name, userOf(call)),
      ),
  }),
  operation({
    id: "dispatch_namespace_get",
    method: "GET",
    path: one,
    summary: "Get a dispatch namespace",
    ...read,
    result: NamespaceSchema,
    handle: async (call) => namespaceResource(call, namespaceOf(call)),
  }),
  operation({
    id: "dispatch_namespace_put",
    method: "PUT",
    path: one,
    summary: "Rename a dispatch namespace, or change whether its customers are trusted",
    ...edit,
    body: NamespaceEditSchema,
    result: NamespaceSchema,
    handle: editNamespace,
  }),
  operation({
    id: "dispatch_namespace_patch",
    method: "PATCH",
    path: one,
    summary: "Rename a dispatch namespace, or change whether its customers are trusted",
    ...edit,
    body: NamespaceEditSchema,
    result: NamespaceSchema,
    handle: editNamespace,
  }),
  operation({
    id: "dispatch_namespace_delete",
    method: "DELETE",
    path: one,
    summary: "Delete a dispatch namespace with every script in it",
    ...edit,
    result: z.null(),
    async handle(call) {
      await call.services.namespaces.delete(namespaceOf(call));
      return null;
    },
  }),
];

const CustomerScriptSchema = z
  .object({
    script: ScriptSchema,
    dispatch_namespace: z.string(),
    created_on: TimeSchema,
    modified_on: TimeSchema,
  })
  .meta({ id: "DispatchScript" });

function customerScript(
  namespace: DispatchNamespace,
  script: Script,
  version: ScriptVersion,
): z.input<typeof CustomerScriptSchema> {
  const resource = scriptResource(script, version);
  return {
    script: resource,
    dispatch_namespace: namespace.name,
    created_on: resource.created_on,
    modified_on: resource.modified_on,
  };
}

/** The public list is not paginated, so the default page has the maximum size. */
const perPageMax = 10_000;
const deletedMax = 1000;

const scriptOperations = [
  listOperation({
    id: "dispatch_script_list",
    method: "GET",
    path: collection.path,
    summary: "List the scripts of a dispatch namespace by name",
    ...read,
    query: pageQuery({ default: perPageMax, max: perPageMax }).extend({
      tags: z.string().max(8192).optional(),
      name: z.string().max(255).default("").meta({ description: "a part of the names" }),
    }),
    result: CustomerScriptSchema,
    async handle(call) {
      const { query, services } = call;
      const namespace = namespaceOf(call);
      const name = query.name.toLowerCase();
      const isTagged = query.tags === undefined ? () => true : tagFilter(query.tags);
      const scripts = services.scripts.list(ownerOf(namespace));
      const page = paginate(
        scripts.filter((script) => script.name.toLowerCase().includes(name) && isTagged(script)),
        query,
      );
      const found = await services.versions.currentOf(page.items);
      return {
        ...page,
        items: found.map(({ script, version }) => customerScript(namespace, script, version)),
      };
    },
  }),
  rawOperation({
    id: "dispatch_script_delete_tagged",
    method: "DELETE",
    path: collection.path,
    summary: "Delete the scripts of a dispatch namespace that have tags",
    ...edit,
    query: z.object({
      tags: z.string().max(8192).optional(),
      limit: z.coerce.number().int().min(1).max(deletedMax).default(deletedMax),
    }),
    async handle(call) {
      const { query, services } = call;
      const owner = ownerOf(namespaceOf(call));
      const tagged = services.scripts.list(owner).filter(tagFilter(query.tags ?? ""));
      const names = tagged.slice(0, query.limit).map(({ name }) => name);
      const deleted = (await services.scripts.delete(owner, names)).map((id) => ({ id }));
      const counts = { deleted_count: deleted.length, has_more: tagged.length > deleted.length };
      // The public API adds these beside the result; older clients read an empty result.
      return new Response(JSON.stringify({ ...success(null, call.messages), deleted, ...counts }), {
        headers: { "content-type": "application/json", "x-request-id": call.requestId },
      });
    },
  }),
  operation({
    id: "dispatch_script_get",
    method: "GET",
    path: `${collection.path}/{script_name}`,
    summary: "Get a customer's script, without its code",
    ...read,
    result: CustomerScriptSchema,
    async handle(call) {
      const script = scriptOf(collection, call);
      return customerScript(namespaceOf(call), script, await call.services.versions.current(script));
    },
  }),
  operation({
    id: "dispatch_script_assets_session_create",
    method: "POST",
    path: `${collection.path}/{script_name}/assets-upload-session`,
    summary: "Begin an upload of a customer's script's static assets",
    ...edit,
    body: SessionInputSchema,
    bodyBytesMax: sessionBodyBytesMax,
    result: SessionSchema,
    async handle(call) {
      const namespace = namespaceOf(call);
      const { id, accountId } = namespace;
      const scriptName = nameOf(call);
      const scriptId = call.services.scripts.find({ accountId, namespace }, scriptName)?.id;
      return call.services.assets.createSession(
        { accountId, namespaceId: id, scriptName, scriptId },
        readManifest(call.body.manifest),
      );
    },
  }),
];

/** Dispatch namespaces, and the customers' scripts in them. */
export const dispatchOperations = [
  ...namespaceOperations,
  ...scriptOperations,
  ...codeOperations(collection),
  ...settingsOperations(collection),
  ...secretOperations(collection),
];
