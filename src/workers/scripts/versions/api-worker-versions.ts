import { z } from "zod";
import { readJson } from "../../../control/api/body.ts";
import { operationsFor } from "../../../control/api/operation.ts";
import { scriptErrorCodes } from "../api-errors.ts";
import { pageQuery } from "../../../control/api/pagination.ts";
import { isoTime } from "../../../platform/util/ids.ts";
import { bindingName } from "../../binding-type.ts";
import { readBindings } from "./bindings.ts";
import type { Binding, InheritBinding } from "../../bindings.ts";
import {
  AnnotationsSchema,
  CompatibilityDate,
  CompatibilityFlags,
  MetadataSchema,
  readUpload,
} from "./metadata.ts";
import {
  accountScripts,
  authorOf,
  byNameOrId,
  editAccess,
  readAccess,
  uuidOf,
  type AnyCall,
  type ScriptServices,
} from "../api-collection.ts";
import { BindingSchema, bindingResource, limitsResource, TimeSchema } from "../resources.ts";
import type { BindingRegistry } from "../../binding-registry.ts";
import type { Script, StoredBinding, ScriptVersion } from "../script.ts";

const { listOperation, operation } = operationsFor<ScriptServices>(scriptErrorCodes);

const path = "/accounts/{account_id}/workers/workers/{worker_name}/versions";
const workerOf = (call: AnyCall): Script => byNameOrId(call, call.params["worker_name"]!);

const ModuleSchema = z.object({ name: z.string(), content_type: z.string(), content_base64: z.string() });
const WorkerVersionSchema = z
  .object({
    id: z.string(),
    number: z.int(),
    created_on: TimeSchema,
    author_id: z.string(),
    author_email: z.string(),
    source: z.string(),
    annotations: z.record(z.string(), z.string()),
    bindings: z.array(BindingSchema),
    compatibility_date: z.string(),
    compatibility_flags: z.array(z.string()),
    limits: z.record(z.string(), z.number()),
    main_module: z.string(),
    modules: z.array(ModuleSchema).optional(),
    usage_model: z.string(),
    startup_time_ms: z.int(),
    urls: z.array(z.string()),
  })
  .meta({ id: "WorkerVersion" });

function resource(version: ScriptVersion): z.input<typeof WorkerVersionSchema> {
  const { content } = version;
  return {
    id: version.id,
    number: version.number,
    created_on: isoTime(version.createdOn),
    author_id: content.author.id,
    author_email: content.author.email,
    source: content.author.client,
    annotations: { ...content.annotations },
    bindings: content.bindings.map(bindingResource),
    compatibility_date: content.compatibilityDate,
    compatibility_flags: [...content.compatibilityFlags],
    limits: limitsResource(version),
    main_module: content.mainModule,
    usage_model: content.usageModel,
    startup_time_ms: content.startupTimeMs,
    urls: [],
  };
}

/** The metadata of an upload, with its modules as base64 instead of form parts. */
const VersionInputSchema = MetadataSchema.extend({ modules: z.array(ModuleSchema).max(1000).optional() });
const DeployQuery = z.object({ deploy: z.enum(["true", "false"]).default("false") });
const own = { bodyKind: "own", acceptAnyContentType: true } as const;

const VersionPatchSchema = z.strictObject({
  env: z.record(bindingName, z.record(z.string(), z.unknown()).nullable()).optional(),
  annotations: AnnotationsSchema.optional(),
  compatibility_date: CompatibilityDate.optional(),
  compatibility_flags: CompatibilityFlags.optional(),
});
const patchBytesMax = 4 * 1024 * 1024;

/** Merges bindings by name; null removes one. */
function patchedBindings(
  bindings: readonly StoredBinding[],
  env: NonNullable<z.output<typeof VersionPatchSchema>["env"]>,
  registry: BindingRegistry,
): (Binding | InheritBinding)[] {
  const kept = bindings
    .filter(({ name }) => !Object.hasOwn(env, name))
    .map(({ name }) => ({ type: "inherit", name }));
  const given = Object.entries(env).flatMap(([name, binding]) =>
    binding === null ? [] : [{ name, ...binding }],
  );
  return readBindings([...kept, ...given], "body/env", registry);
}

/** Versions of scripts as JSON. */
export const workerVersionOperations = [
  listOperation({
    id: "worker_version_list",
    method: "GET",
    path,
    summary: "List the versions of a script, newest first",
    access: readAccess,
    query: pageQuery({ default: 10, max: 100 }),
    result: WorkerVersionSchema,
    async handle(call) {
      const { query } = call;
      const { versions, totalCount } = await call.services.versions.list(workerOf(call), query);
      return { items: versions.map(resource), page: query.page, perPage: query.per_page, totalCount };
    },
  }),
  operation({
    id: "worker_version_create",
    method: "POST",
    path,
    summary: "Create a version of a script, and deploy it with deploy=true",
    access: editAccess,
    query: DeployQuery,
    ...own,
    body: VersionInputSchema,
    result: WorkerVersionSchema,
    async handle(call) {
      const { versions } = call.services;
      // Base64 adds a third to the length.
      const body = await readJson(call.incoming, VersionInputSchema, versions.uploadBytesMax * 1.4);
      const { modules = [], ...metadata } = body;
      const script = workerOf(call);
      const files = modules.map(({ name, content_type: contentType, content_base64 }) => ({
        name,
        contentType,
        bytes: Buffer.from(content_base64, "base64"),
      }));
      const upload = await readUpload({ metadata, files }, call.messages, call.services.bindings);
      const { version } = await versions.upload(
        accountScripts.owner(call),
        script.name,
        upload,
        authorOf(call),
        {
          deploy: call.query.deploy === "true",
        },
      );
      return resource(version);
    },
  }),
  operation({
    id: "worker_version_patch",
    method: "PATCH",
    path: `${path}/latest`,
    summary: "Create a version of a script from the latest one and a merge patch",
    access: editAccess,
    query: DeployQuery,
    ...own,
    body: VersionPatchSchema,
    result: WorkerVersionSchema,
    async handle(call) {
      const patch = await readJson(call.incoming, VersionPatchSchema, patchBytesMax);
      const { name } = workerOf(call);
      const { env } = patch;
      const { version } = await call.services.versions.revise(
        accountScripts.owner(call),
        name,
        authorOf(call),
        ({ content }) => ({
          compatibilityDate: patch.compatibility_date,
          compatibilityFlags: patch.compatibility_flags,
          annotations: patch.annotations,
          bindings: env && patchedBindings(content.bindings, env, call.services.bindings),
          deploy: call.query.deploy === "true",
        }),
      );
      return resource(version);
    },
  }),
  operation({
    id: "worker_version_get",
    method: "GET",
    path: `${path}/{version_id}`,
    summary: "Get a version of a script, with its code if include=modules; `latest` is the newest version",
    access: readAccess,
    query: z.object({ include: z.literal("modules").optional() }),
    result: WorkerVersionSchema,
    async handle(call) {
      const { versions } = call.services;
      const isLatest = call.params["version_id"] === "latest";
      const id = isLatest ? "" : uuidOf(call, "version_id");
      const script = workerOf(call);
      const version = isLatest ? await versions.latest(script) : await versions.get(script, id);
      if (call.query.include === undefined) return resource(version);
      const modules = await versions.codeOf(version);
      return {
        ...resource(version),
        modules: modules.map(({ name, contentType, content }) => ({
          name,
          content_type: contentType,
          content_base64: Buffer.from(content as string).toString("base64"),
        })),
      };
    },
  }),
  operation({
    id: "worker_version_delete",
    hidesBefore: true,
    method: "DELETE",
    path: `${path}/{version_id}`,
    summary: "Delete a version of a script that does not serve requests",
    access: editAccess,
    result: z.null(),
    async handle(call) {
      const id = uuidOf(call, "version_id");
      const { name } = workerOf(call);
      await call.services.versions.delete(accountScripts.owner(call), name, id);
      return null;
    },
  }),
];
