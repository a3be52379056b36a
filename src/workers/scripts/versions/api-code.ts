import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { ApiError } from "../../../control/api/errors.ts";
import { expected } from "../../../control/api/if-match.ts";
import type { MultipartLimits } from "../../../control/api/multipart.ts";
import { operationsFor, type Operation } from "../../../control/api/operation.ts";
import { scriptErrorCodes } from "../api-errors.ts";
import { readSniffedUploadForm, readUploadForm, type UploadForm } from "../../../control/api/upload-form.ts";
import { idText } from "../../binding-type.ts";
import { MetadataSchema, readContent, readUpload } from "./metadata.ts";
import {
  authorOf,
  checkNewName,
  editAccess,
  nameOf,
  readAccess,
  scriptOf,
  type AnyCall,
  type ScriptCollection,
  type ScriptServices,
} from "../api-collection.ts";
import { ScriptSchema, scriptResource, UploadedSchema } from "../resources.ts";
import type { Script, ScriptVersion } from "../script.ts";
import { scriptErrors } from "../errors.ts";

const { operation, rawOperation } = operationsFor<ScriptServices>(scriptErrorCodes);

/** Reads the form of an upload. Throws the error for scripts if it is too large. */
export async function readForm(
  { incoming, services }: Pick<AnyCall, "incoming"> & { services: Pick<ScriptServices, "versions"> },
  read: (request: IncomingMessage, limits: MultipartLimits) => Promise<UploadForm>,
): Promise<UploadForm> {
  const bytesMax = services.versions.uploadBytesMax;
  try {
    return await read(incoming, { bodyBytesMax: bytesMax, partBytesMax: bytesMax, partsMax: 2000 });
  } catch (error) {
    throw error instanceof ApiError && error.status === 413 ? scriptErrors.tooLarge(bytesMax) : error;
  }
}

export const UploadQuery = z.object({
  /**
   * Both parameters are accepted: responses never contain the code, and a binding that cannot be inherited is
   * always refused.
   */
  excludeScript: z.string().optional(),
  bindings_inherit: z.literal("strict").optional(),
});
export const UploadBody = z.object({ metadata: MetadataSchema });

/** Upload, download and deletion of a script's code. */
export function codeOperations(collection: ScriptCollection): Operation<ScriptServices>[] {
  const path = `${collection.path}/{script_name}`;
  return [
    operation({
      id: `${collection.id}_upload`,
      method: "PUT",
      path,
      summary: `Upload a ${collection.noun} and deploy it`,
      access: editAccess,
      query: UploadQuery,
      body: UploadBody,
      bodyKind: "own",
      acceptAnyContentType: true,
      result: UploadedSchema,
      async handle(call) {
        const owner = collection.owner(call);
        const name = nameOf(call);
        checkNewName(owner, name);
        const form = await readForm(call, readSniffedUploadForm);
        const upload = await readUpload(form, call.messages, call.services.bindings);
        const options = { deploy: true };
        const { versions } = call.services;
        const added = await versions.upload(owner, name, upload, authorOf(call), options);
        const { script, version, reconciliation } = added;
        return {
          ...scriptResource(script, version),
          startup_time_ms: version.content.startupTimeMs,
          deployment_id: version.id,
          entry_point: version.content.mainModule,
          ...(reconciliation && { exports_reconciliation: reconciliation }),
        };
      },
    }),
    operation({
      id: `${collection.id}_delete`,
      method: "DELETE",
      path,
      summary: `Delete a ${collection.noun} with all of its versions`,
      access: editAccess,
      query: z.object({ force: z.enum(["true", "false"]).optional() }),
      result: z.null(),
      handle: async (call) =>
        deleteScript(collection, call, scriptOf(collection, call), call.query.force === "true"),
    }),
    rawOperation({
      id: `${collection.id}_content_get`,
      method: "GET",
      path: collection.id === "script" ? `${path}/content/v2` : `${path}/content`,
      summary: `Get the code of a ${collection.noun} as multipart/form-data, a part for each module`,
      access: readAccess,
      query: z.object({ version: idText.optional() }),
      async handle(call) {
        const { versions } = call.services;
        const script = scriptOf(collection, call);
        const id = call.query.version;
        return contentResponse(
          call,
          id === undefined ? await versions.current(script) : await versions.get(script, id),
        );
      },
    }),
    operation({
      id: `${collection.id}_content_put`,
      takesIfMatch: true,
      method: "PUT",
      path: `${path}/content`,
      summary: `Replace the code of a ${collection.noun}, and keep its settings`,
      access: editAccess,
      body: UploadBody,
      bodyKind: "own",
      result: ScriptSchema,
      async handle(call) {
        const form = await readForm(call, readUploadForm);
        scriptOf(collection, call);
        const code = await readContent(form, call.incoming.headers, call.messages);
        const check = expected(call.incoming);
        const { script, version } = await call.services.versions.revise(
          collection.owner(call),
          nameOf(call),
          authorOf(call),
          (live) => {
            check(live.content.etag);
            return { code };
          },
          "live",
        );
        call.etag = version.content.etag;
        return scriptResource(script, version);
      },
    }),
  ];
}

/** Deletes a script. One that others use is deleted only with `force`. */
export async function deleteScript(
  collection: ScriptCollection,
  call: AnyCall,
  script: Script,
  force: boolean,
): Promise<null> {
  const { scripts, references, domains } = call.services;
  if (!force && script.namespaceId === null) {
    const users = await references.to(script);
    if (users.length > 0)
      throw scriptErrors.referenced(
        script.name,
        users.map(({ name }) => name),
      );
  }
  // An account's script is deleted with its domains; this removes the DNS records that were created for them.
  if (script.namespaceId === null) await domains.delete(domains.listOf(script.accountId, script.name));
  await scripts.delete(collection.owner(call), [script.name]);
  return null;
}

/** The modules as a multipart form, as they were uploaded. */
export async function contentResponse(call: AnyCall, version: ScriptVersion): Promise<Response> {
  const form = new FormData();
  for (const { name, content, contentType } of await call.services.versions.codeOf(version))
    form.append(name, new File([content as Uint8Array<ArrayBuffer> | string], name, { type: contentType }));
  const response = new Response(form);
  response.headers.set("cf-entrypoint", version.content.mainModule);
  response.headers.set("etag", `"${version.content.etag}"`);
  response.headers.set("x-request-id", call.requestId);
  return response;
}
