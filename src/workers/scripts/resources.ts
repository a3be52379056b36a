import { z } from "zod";
import { ReconciliationSchema } from "./versions/object-exports.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Deployment, Script, VersionShare, StoredBinding, ScriptVersion } from "./script.ts";

export const TimeSchema = z.string().meta({ format: "date-time" });
export const BindingSchema = z
  .looseObject({ type: z.string(), name: z.string() })
  .meta({ id: "ScriptBinding" });
const LooseObject = z.record(z.string(), z.unknown());

export const ScriptSchema = z
  .object({
    id: z.string(),
    tag: z.string(),
    tags: z.array(z.string()),
    etag: z.string(),
    handlers: z.array(z.string()),
    named_handlers: z.array(z.object({ name: z.string(), handlers: z.array(z.string()) })),
    created_on: TimeSchema,
    modified_on: TimeSchema,
    compatibility_date: z.string(),
    compatibility_flags: z.array(z.string()),
    has_assets: z.boolean(),
    has_modules: z.boolean(),
    logpush: z.boolean(),
    last_deployed_from: z.string(),
    observability: LooseObject,
    placement: LooseObject.optional(),
    tail_consumers: z.array(z.unknown()).nullable(),
    usage_model: z.string(),
    migration_tag: z.string().optional(),
  })
  .meta({ id: "Script" });

export const UploadedSchema = ScriptSchema.extend({
  startup_time_ms: z.int(),
  deployment_id: z.string(),
  entry_point: z.string(),
  exports_reconciliation: ReconciliationSchema.optional(),
}).meta({ id: "UploadedScript" });

export function scriptResource(script: Script, { content }: ScriptVersion): z.input<typeof ScriptSchema> {
  return {
    id: script.name,
    tag: script.id,
    tags: [...script.tags],
    etag: content.etag,
    handlers: [...content.handlers],
    named_handlers: content.namedHandlers.map(({ name, handlers }) => ({ name, handlers })),
    created_on: isoTime(script.createdOn),
    modified_on: isoTime(script.modifiedOn),
    compatibility_date: content.compatibilityDate,
    compatibility_flags: [...content.compatibilityFlags],
    has_assets: content.assets !== null,
    has_modules: true,
    logpush: script.settings.logpush,
    last_deployed_from: content.author.client,
    observability: script.settings.observability ?? { enabled: false },
    placement: content.placement ?? undefined,
    tail_consumers: script.settings.tailConsumers === null ? null : [...script.settings.tailConsumers],
    usage_model: content.usageModel,
    ...(script.migrationTag === null ? {} : { migration_tag: script.migrationTag }),
  };
}

export const SettingsSchema = z
  .object({
    bindings: z.array(BindingSchema),
    compatibility_date: z.string(),
    compatibility_flags: z.array(z.string()),
    limits: LooseObject,
    logpush: z.boolean(),
    observability: LooseObject,
    placement: LooseObject.optional(),
    tags: z.array(z.string()),
    tail_consumers: z.array(z.unknown()).nullable(),
    usage_model: z.string(),
  })
  .meta({ id: "ScriptSettings" });

export function settingsResource(script: Script, version: ScriptVersion): z.input<typeof SettingsSchema> {
  const { observability, placement, tail_consumers, logpush, tags, usage_model } = scriptResource(
    script,
    version,
  );
  return {
    bindings: version.content.bindings.map(bindingResource),
    compatibility_date: version.content.compatibilityDate,
    compatibility_flags: [...version.content.compatibilityFlags],
    limits: limitsResource(version),
    logpush,
    observability,
    placement,
    tags,
    tail_consumers,
    usage_model,
  };
}

/** Shows that a secret exists, but not its value. */
export function bindingResource(binding: StoredBinding): z.input<typeof BindingSchema> {
  return binding.type === "secret_text" ? { type: binding.type, name: binding.name } : { ...binding };
}

export const limitsResource = ({ content }: ScriptVersion): Record<string, number> => ({
  ...(content.limits?.cpuMs === undefined ? {} : { cpu_ms: content.limits.cpuMs }),
  ...(content.limits?.subRequests === undefined ? {} : { subrequests: content.limits.subRequests }),
});

export const VersionSchema = z
  .object({
    id: z.string(),
    number: z.int(),
    metadata: z.object({
      created_on: TimeSchema,
      modified_on: TimeSchema,
      source: z.string(),
      author_id: z.string(),
      author_email: z.string(),
      hasPreview: z.boolean(),
    }),
    annotations: z.record(z.string(), z.string()),
    resources: z.object({
      script: z.object({
        etag: z.string(),
        handlers: z.array(z.string()),
        named_handlers: ScriptSchema.shape.named_handlers,
        last_deployed_from: z.string(),
      }),
      bindings: z.array(BindingSchema),
      script_runtime: z.object({
        compatibility_date: z.string(),
        compatibility_flags: z.array(z.string()),
        usage_model: z.string(),
        limits: z.record(z.string(), z.number()),
      }),
    }),
  })
  .meta({ id: "ScriptVersion" });

export function versionResource(version: ScriptVersion): z.input<typeof VersionSchema> {
  const { content } = version;
  const createdOn = isoTime(version.createdOn);
  return {
    id: version.id,
    number: version.number,
    metadata: {
      created_on: createdOn,
      modified_on: createdOn,
      source: content.author.client,
      author_id: content.author.id,
      author_email: content.author.email,
      hasPreview: false,
    },
    annotations: { ...content.annotations },
    resources: {
      script: {
        etag: content.etag,
        handlers: [...content.handlers],
        named_handlers: content.namedHandlers.map(({ name, handlers }) => ({ name, handlers })),
        last_deployed_from: content.author.client,
      },
      bindings: content.bindings.map(bindingResource),
      script_runtime: {
        compatibility_date: content.compatibilityDate,
        compatibility_flags: [...content.compatibilityFlags],
        usage_model: content.usageModel,
        limits: limitsResource(version),
      },
    },
  };
}

export const DeploymentSchema = z
  .object({
    id: z.string(),
    source: z.string(),
    strategy: z.literal("percentage"),
    author_email: z.string(),
    created_on: TimeSchema,
    annotations: z.record(z.string(), z.string()),
    versions: z.array(z.object({ version_id: z.string(), percentage: z.number() })),
  })
  .meta({ id: "ScriptDeployment" });

export const deploymentResource = (deployment: Deployment): z.input<typeof DeploymentSchema> => ({
  id: deployment.id,
  source: deployment.source,
  strategy: "percentage",
  author_email: deployment.authorEmail,
  created_on: isoTime(deployment.createdOn),
  annotations: { ...deployment.annotations },
  versions: deployment.versions.map(shareResource),
});

const shareResource = ({ versionId, percentage }: VersionShare) => ({ version_id: versionId, percentage });
