import { z } from "zod";
import { operationsFor } from "../../../control/api/operation.ts";
import { scriptErrorCodes } from "../api-errors.ts";
import { pageQuery, paginate } from "../../../control/api/pagination.ts";
import { readUploadForm } from "../../../control/api/upload-form.ts";
import { UploadBody, UploadQuery, readForm } from "./api-code.ts";
import { idText } from "../../binding-type.ts";
import { readUpload } from "./metadata.ts";
import {
  accountScripts,
  authorOf,
  editAccess,
  nameOf,
  readAccess,
  scriptOf,
  uuidOf,
  type ScriptServices,
} from "../api-collection.ts";
import { DeploymentSchema, deploymentResource, VersionSchema, versionResource } from "../resources.ts";
import { scriptErrors } from "../errors.ts";

const { operation } = operationsFor<ScriptServices>(scriptErrorCodes);

const path = `${accountScripts.path}/{script_name}`;
const read = { access: readAccess } as const;
const edit = { access: editAccess } as const;

const UploadedVersionSchema = VersionSchema.extend({ startup_time_ms: z.int() });
const DeploymentListSchema = z.object({ deployments: z.array(DeploymentSchema) });
const DeploymentInputSchema = z.strictObject({
  strategy: z.literal("percentage").default("percentage"),
  versions: z
    .array(z.strictObject({ version_id: idText, percentage: z.number().min(0).max(100) }))
    .min(1)
    .max(2),
  annotations: z.record(z.string().max(100), z.string().max(1000)).default({}),
  /** Accepted and ignored: a deployment takes effect for every request that begins after it. */
  code_update_strategy: z.unknown().optional(),
  // Accepted and ignored, so that a response can be sent back.
  id: z.string().optional(),
  source: z.string().optional(),
  author_email: z.string().optional(),
  created_on: z.string().optional(),
});

const versionOperations = [
  operation({
    id: "script_version_list",
    method: "GET",
    path: `${path}/versions`,
    summary: "List the versions of a script, newest first",
    ...read,
    // `deployable` changes nothing, because every version can be deployed.
    query: pageQuery({ default: 25, max: 100 }).extend({ deployable: z.enum(["true", "false"]).optional() }),
    result: z.object({ items: z.array(VersionSchema) }),
    async handle(call) {
      const { query, services } = call;
      const script = scriptOf(accountScripts, call);
      const { versions, totalCount } = await services.versions.list(script, query);
      call.resultInfo = {
        page: query.page,
        per_page: query.per_page,
        count: versions.length,
        total_count: totalCount,
        total_pages: Math.ceil(totalCount / query.per_page),
      };
      return { items: versions.map(versionResource) };
    },
  }),
  operation({
    id: "script_version_upload",
    method: "POST",
    path: `${path}/versions`,
    summary: "Upload a version of a script without deploying it",
    ...edit,
    query: UploadQuery,
    body: UploadBody,
    bodyKind: "own",
    result: UploadedVersionSchema,
    async handle(call) {
      const owner = accountScripts.owner(call);
      const form = await readForm(call, readUploadForm);
      const upload = await readUpload(form, call.messages, call.services.bindings);
      const options = { deploy: false };
      const { version } = await call.services.versions.upload(
        owner,
        nameOf(call),
        upload,
        authorOf(call),
        options,
      );
      return { ...versionResource(version), startup_time_ms: version.content.startupTimeMs };
    },
  }),
  operation({
    id: "script_version_get",
    method: "GET",
    path: `${path}/versions/{version_id}`,
    summary: "Get a version of a script",
    ...read,
    result: VersionSchema,
    async handle(call) {
      const id = uuidOf(call, "version_id");
      return versionResource(await call.services.versions.get(scriptOf(accountScripts, call), id));
    },
  }),
];

const deploymentOperations = [
  operation({
    id: "script_deployment_list",
    method: "GET",
    path: `${path}/deployments`,
    summary: "List the deployments of a script, newest first: the first serves requests",
    ...read,
    query: pageQuery({ default: 100, max: 100 }),
    // The official client reads `items` for pagination; people and tools read `deployments`.
    result: DeploymentListSchema.extend({ items: z.array(DeploymentListSchema) }),
    async handle(call) {
      const all = await call.services.deployments.list(scriptOf(accountScripts, call));
      const deployments = paginate(all, call.query).items.map(deploymentResource);
      return { deployments, items: deployments.length === 0 ? [] : [{ deployments }] };
    },
  }),
  operation({
    id: "script_deployment_create",
    method: "POST",
    path: `${path}/deployments`,
    summary: "Deploy a version of a script, or two versions with percentages of the requests",
    ...edit,
    query: z.object({ force: z.enum(["true", "false"]).optional() }),
    body: DeploymentInputSchema,
    result: DeploymentSchema,
    async handle(call) {
      const { versions, annotations } = call.body;
      const shares = versions.map(({ version_id: versionId, percentage }) => ({ versionId, percentage }));
      const sum = shares.reduce((total, { percentage }) => total + percentage, 0);
      if (Math.abs(sum - 100) > 0.001) throw scriptErrors.percentages(sum);
      if (new Set(shares.map(({ versionId }) => versionId)).size < shares.length)
        throw scriptErrors.invalid("Expected two different versions", "/body/versions/1/version_id");
      const owner = accountScripts.owner(call);
      return deploymentResource(
        await call.services.deployments.create(owner, nameOf(call), shares, authorOf(call), annotations),
      );
    },
  }),
  operation({
    id: "script_deployment_get",
    method: "GET",
    path: `${path}/deployments/{deployment_id}`,
    summary: "Get a deployment of a script",
    ...read,
    result: DeploymentSchema,
    async handle(call) {
      const id = uuidOf(call, "deployment_id");
      return deploymentResource(await call.services.deployments.get(scriptOf(accountScripts, call), id));
    },
  }),
  operation({
    id: "script_deployment_delete",
    method: "DELETE",
    path: `${path}/deployments/{deployment_id}`,
    summary: "Delete a deployment of a script that does not serve requests",
    ...edit,
    result: z.null(),
    async handle(call) {
      const id = uuidOf(call, "deployment_id");
      await call.services.deployments.delete(scriptOf(accountScripts, call), id);
      return null;
    },
  }),
];

export const scriptVersionOperations = [...versionOperations, ...deploymentOperations];
