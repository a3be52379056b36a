import { z } from "zod";
import { readJson } from "../../control/api/body.ts";
import type { MultipartLimits } from "../../control/api/multipart.ts";
import { operationsFor, type Operation } from "../../control/api/operation.ts";
import { scriptErrorCodes } from "./api-errors.ts";
import { readUploadForm } from "../../control/api/upload-form.ts";
import { validate } from "../../control/api/validation.ts";
import {
  LimitsSchema,
  ObservabilitySchema,
  readScriptSettings,
  readSettings,
  SettingsInputSchema,
  TagSchema,
  TagsSchema,
  tagsMax,
} from "./versions/metadata.ts";
import {
  authorOf,
  editAccess,
  nameOf,
  readAccess,
  scriptOf,
  type AnyCall,
  type ScriptCollection,
  type ScriptServices,
} from "./api-collection.ts";
import { BindingSchema, bindingResource, SettingsSchema, settingsResource } from "./resources.ts";
import type { Script, VersionContent } from "./script.ts";
import { scriptErrors } from "./errors.ts";

const { operation } = operationsFor<ScriptServices>(scriptErrorCodes);

const settingsLimits: MultipartLimits = {
  bodyBytesMax: 4 * 1024 * 1024,
  partBytesMax: 4 * 1024 * 1024,
  partsMax: 10_000,
};
const tagsBytesMax = 64 * 1024;

/** Settings that belong to a version: a change makes a new version with the same code. */
export function settingsOperations(collection: ScriptCollection): Operation<ScriptServices>[] {
  const path = `${collection.path}/{script_name}`;
  const read = { access: readAccess } as const;
  const edit = { access: editAccess } as const;
  return [
    operation({
      id: `${collection.id}_settings_get`,
      method: "GET",
      path: `${path}/settings`,
      summary: `Get the settings and bindings of a ${collection.noun}`,
      ...read,
      result: SettingsSchema,
      async handle(call) {
        const script = scriptOf(collection, call);
        return settingsResource(script, await call.services.versions.current(script));
      },
    }),
    operation({
      id: `${collection.id}_settings_edit`,
      method: "PATCH",
      path: `${path}/settings`,
      summary: `Change settings or bindings of a ${collection.noun}, and keep its code`,
      ...edit,
      body: z.object({ settings: SettingsInputSchema }),
      bodyKind: "own",
      result: SettingsSchema,
      async handle(call) {
        const { metadata } = await readUploadForm(call.incoming, settingsLimits, "settings");
        const { script, version } = await call.services.versions.revise(
          collection.owner(call),
          nameOf(call),
          authorOf(call),
          ({ content }) => {
            const known = new Map(content.bindings.map(({ name, type }) => [name, type]));
            return readSettings(metadata, known, call.messages, call.services.bindings);
          },
        );
        return settingsResource(script, version);
      },
    }),
    operation({
      id: `${collection.id}_bindings`,
      method: "GET",
      path: `${path}/bindings`,
      summary: `List the bindings of a ${collection.noun}`,
      ...read,
      result: z.array(BindingSchema),
      async handle(call) {
        const { content } = await call.services.versions.current(scriptOf(collection, call));
        return content.bindings.map(bindingResource);
      },
    }),
    operation({
      id: `${collection.id}_tags_get`,
      method: "GET",
      path: `${path}/tags`,
      summary: `List the tags of a ${collection.noun}`,
      ...read,
      result: z.array(z.string()),
      handle: async (call) => [...scriptOf(collection, call).tags],
    }),
    operation({
      id: `${collection.id}_tags_put`,
      method: "PUT",
      path: `${path}/tags`,
      summary: `Replace the tags of a ${collection.noun}`,
      ...edit,
      body: TagsSchema,
      bodyKind: "own",
      acceptAnyContentType: true,
      result: z.array(z.string()),
      async handle(call) {
        const tags = await readJson(call.incoming, TagsSchema, tagsBytesMax);
        return [...(await editTags(collection, call, () => tags)).tags];
      },
    }),
    operation({
      id: `${collection.id}_tag_put`,
      method: "PUT",
      path: `${path}/tags/{tag_name}`,
      summary: `Add a tag to a ${collection.noun}`,
      ...edit,
      result: z.null(),
      async handle(call) {
        const tag = validate(TagSchema, call.params["tag_name"], "tag_name");
        await editTags(collection, call, (tags) => (tags.includes(tag) ? tags : [...tags, tag]));
        return null;
      },
    }),
    operation({
      id: `${collection.id}_tag_delete`,
      method: "DELETE",
      path: `${path}/tags/{tag_name}`,
      summary: `Remove a tag from a ${collection.noun}`,
      ...edit,
      result: z.null(),
      async handle(call) {
        const tag = call.params["tag_name"]!;
        await editTags(collection, call, (tags) => {
          if (!tags.includes(tag)) throw scriptErrors.tagNotFound(tag);
          return tags.filter((each) => each !== tag);
        });
        return null;
      },
    }),
  ];
}

async function editTags(
  collection: ScriptCollection,
  call: AnyCall,
  change: (tags: readonly string[]) => readonly string[],
): Promise<Script> {
  return call.services.scripts.edit(collection.owner(call), nameOf(call), (script) => {
    const tags = change(script.tags);
    if (tags.length > tagsMax) throw scriptErrors.tooManyTags(tagsMax);
    return { tags };
  });
}

const ScriptSettingsSchema = SettingsSchema.pick({
  logpush: true,
  observability: true,
  tags: true,
  tail_consumers: true,
});
const UsageModelSchema = z.object({
  usage_model: z.string(),
  user_limits: z.object({ cpu_ms: z.number().nullable() }).nullable(),
});

function scriptSettings({ settings, tags }: Script): z.input<typeof ScriptSettingsSchema> {
  return {
    logpush: settings.logpush,
    observability: settings.observability ?? { enabled: false },
    tags: [...tags],
    tail_consumers: settings.tailConsumers === null ? null : [...settings.tailConsumers],
  };
}

/** Settings of an account's script that belong to no version, and older names of settings. */
export function accountSettingsOperations(collection: ScriptCollection): Operation<ScriptServices>[] {
  const path = `${collection.path}/{script_name}`;
  return [
    operation({
      id: `${collection.id}_script_settings_get`,
      method: "GET",
      path: `${path}/script-settings`,
      summary: "Get the settings of a script that belong to no version",
      access: readAccess,
      result: ScriptSettingsSchema,
      handle: async (call) => scriptSettings(scriptOf(collection, call)),
    }),
    operation({
      id: `${collection.id}_script_settings_edit`,
      method: "PATCH",
      path: `${path}/script-settings`,
      summary: "Change the settings of a script that belong to no version",
      access: editAccess,
      body: z.strictObject({
        logpush: z.boolean().optional(),
        observability: ObservabilitySchema.nullish(),
        tags: TagsSchema.nullish(),
        tail_consumers: z.array(z.unknown()).max(1000).nullish(),
      }),
      result: ScriptSettingsSchema,
      async handle(call) {
        const { tags } = call.body;
        const settings = readScriptSettings(call.body);
        return scriptSettings(
          await call.services.scripts.edit(collection.owner(call), nameOf(call), (script) => ({
            settings,
            tags: tags === undefined ? script.tags : (tags ?? []),
          })),
        );
      },
    }),
    operation({
      id: `${collection.id}_usage_model_get`,
      method: "GET",
      path: `${path}/usage-model`,
      summary: "Get the usage model of a script",
      access: readAccess,
      result: UsageModelSchema,
      async handle(call) {
        const { content } = await call.services.versions.current(scriptOf(collection, call));
        return usageModel(content);
      },
    }),
    operation({
      id: `${collection.id}_usage_model_put`,
      method: "PUT",
      path: `${path}/usage-model`,
      summary: "Change the usage model of a script",
      access: editAccess,
      body: z.strictObject({
        usage_model: z.enum(["standard", "bundled", "unbound"]).optional(),
        user_limits: z.strictObject({ cpu_ms: LimitsSchema.shape.cpu_ms.nullable() }).nullish(),
      }),
      result: UsageModelSchema,
      async handle(call) {
        const { usage_model, user_limits: limits } = call.body;
        const { version } = await call.services.versions.revise(
          collection.owner(call),
          nameOf(call),
          authorOf(call),
          ({ content }) => ({
            usageModel: usage_model,
            limits: limits === undefined ? undefined : withCpuMs(content.limits, limits?.cpu_ms ?? undefined),
          }),
        );
        return usageModel(version.content);
      },
    }),
  ];
}

function usageModel({ usageModel: model, limits }: VersionContent): z.input<typeof UsageModelSchema> {
  return {
    usage_model: model,
    user_limits: limits?.cpuMs === undefined ? null : { cpu_ms: limits.cpuMs },
  };
}

function withCpuMs(limits: VersionContent["limits"], cpuMs: number | undefined): VersionContent["limits"] {
  const { cpuMs: _, ...others } = limits ?? {};
  const changed = { ...others, ...(cpuMs === undefined ? {} : { cpuMs }) };
  return Object.keys(changed).length === 0 ? null : changed;
}
