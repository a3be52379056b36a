import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import type { ApiMessage } from "../../../control/api/envelope.ts";
import type { UploadForm } from "../../../control/api/upload-form.ts";
import { validate } from "../../../control/api/validation.ts";
import { show } from "../../../platform/util/json.ts";
import { readAssetConfig } from "../../assets/config.ts";
import type { BindingRegistry } from "../../binding-registry.ts";
import { readBindings } from "./bindings.ts";
import type { ScriptCode } from "./code.ts";
import { MigrationsSchema, readMigrations } from "./object-classes.ts";
import { ExportsSchema, readExports } from "./object-exports.ts";
import { readModuleCode, readServiceWorkerCode } from "./modules.ts";
import type { ScriptSettings } from "../script.ts";
import type { AssetsInput, Revision, VersionUpload, VersionInput } from "./version-input.ts";
import { defaultCompatibilityDate } from "./versions.ts";
import { scriptErrors } from "../errors.ts";
import { clock } from "../../../platform/timers/clock.ts";

const today = (): string => new Date(clock.now()).toISOString().slice(0, 10);
export const CompatibilityDate = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}$/)
  .refine((date) => !Number.isNaN(Date.parse(date)), { error: "an existing date" })
  .refine((date) => date <= today(), { error: "a date that is not in the future" });

export const CompatibilityFlags = z.array(z.string().max(100)).max(100);

export const tagsMax = 10;
export const TagSchema = z
  .string()
  .min(1)
  .max(512)
  .regex(/^[^,&]+$/);
export const TagsSchema = z.array(TagSchema).max(tagsMax);
/** Form fields are text. */
const number = z.coerce.number().int();
const flag = z.union([z.boolean(), z.stringbool()]);

export const LimitsSchema = z.strictObject({
  cpu_ms: number.min(1).max(300_000).optional(),
  subrequests: number.min(1).max(10_000_000).optional(),
});
export const ObservabilitySchema = z.looseObject({ enabled: flag.default(false) });
export const AnnotationsSchema = z.record(z.string().max(100), z.string().max(1000));

/** Entries of each list. The check of bindings has a lower limit of its own. */
const listedMax = 1000;

/** Fields of both uploads and settings. */
const common = {
  bindings: z.array(z.unknown()).max(listedMax).optional(),
  compatibility_date: CompatibilityDate.optional(),
  compatibility_flags: CompatibilityFlags.optional(),
  limits: LimitsSchema.nullish(),
  logpush: flag.optional(),
  observability: ObservabilitySchema.nullish(),
  placement: z.looseObject({}).nullish(),
  tags: TagsSchema.nullish(),
  tail_consumers: z.array(z.unknown()).max(listedMax).nullish(),
  usage_model: z.enum(["standard", "bundled", "unbound"]).optional(),
  annotations: AnnotationsSchema.optional(),
};

/** How objects that are busy get a new version: after at most `max_delay` seconds. */
const CodeUpdateSchema = z.looseObject({
  mode: z.string().max(64).optional(),
  max_delay: z.number().min(0).max(86_400).optional(),
});

export const MetadataSchema = z
  .looseObject({
    ...common,
    main_module: z.string().min(1).max(1024).optional(),
    body_part: z.string().optional(),
    keep_bindings: z.array(z.string()).max(listedMax).optional(),
    keep_assets: flag.optional(),
    migrations: MigrationsSchema.nullish(),
    exports: ExportsSchema.nullish(),
    code_update_strategy: CodeUpdateSchema.nullish(),
    assets: z
      .strictObject({ jwt: z.string().optional(), config: z.record(z.string(), z.unknown()).optional() })
      .optional(),
  })
  .meta({ id: "ScriptMetadata" });

export const SettingsInputSchema = z.looseObject(common).meta({ id: "ScriptSettingsInput" });

/** Deploys do not list secrets, which are set separately, and must not remove them. */
const keptByDefault: readonly string[] = ["secret_text"];

/** Fields that clients send and that change nothing here. */
const harmless: ReadonlySet<string> = new Set(["package_dependencies"]);
/** Fields of products that this platform does not have: refused, unless they are empty. */
const absentProducts: Readonly<Record<string, string>> = {
  containers: "Containers",
};
const unsupported = ["streaming_tail_consumers", "cache_options", "capnp_schema"] as const;

/** Fields that are stored and shown without effect, with the message for the client when they are used. */
const keptOnly: Readonly<Record<string, string>> = {
  placement: "scripts run where the installation is",
  observability: "no logs are stored here; use live logs instead, for example with wrangler tail",
};

type Common = z.output<typeof SettingsInputSchema>;

/** Parses an upload of a whole script. Ignored fields are reported in `messages`. */
export async function readUpload(
  form: UploadForm,
  messages: ApiMessage[],
  registry: BindingRegistry,
): Promise<VersionUpload> {
  const metadata = validate(MetadataSchema, form.metadata, "metadata");
  refuseUnsupported(metadata, MetadataSchema, messages);
  if (metadata.compatibility_date === undefined) {
    messages.push({
      code: 10021,
      message: `The metadata has no compatibility_date, so ${defaultCompatibilityDate} is used: later changes of the runtime do not apply`,
    });
  }
  const assets = readAssets(metadata, messages);
  return {
    ...readCommon(metadata),
    code: await readCode(form.files, metadata, assets !== undefined, messages),
    bindings: readBindings(metadata.bindings ?? [], "metadata/bindings", registry),
    keepBindings: metadata.keep_bindings ?? keptByDefault,
    assets,
    tags: tagsOf(metadata),
    migrations: readMigrations(metadata.migrations),
    exports: readExports(metadata.exports, metadata.migrations != null),
    codeUpdateDelayMs: delayOf(metadata.code_update_strategy),
  };
}

/** Milliseconds. Without a deferred update objects get a new version at once. */
const delayOf = (given: z.output<typeof CodeUpdateSchema> | null | undefined): number =>
  given?.mode === "deferred" ? (given.max_delay ?? 0) * 1000 : 0;

/** Parses a change of settings. `known` are the types of the script's bindings by name. */
export function readSettings(
  value: unknown,
  known: ReadonlyMap<string, string>,
  messages: ApiMessage[],
  registry: BindingRegistry,
): Revision {
  const settings = validate(SettingsInputSchema, value, "settings");
  refuseUnsupported(settings, SettingsInputSchema, messages);
  return {
    ...readCommon(settings),
    bindings:
      settings.bindings &&
      readBindings(
        settings.bindings.map((each) => kept(each, known)),
        "settings/bindings",
        registry,
      ),
    tags: tagsOf(settings),
  };
}

/** Null removes all tags; undefined keeps them. */
const tagsOf = ({ tags }: Common): readonly string[] | undefined => (tags === null ? [] : tags);

/** Clients list bindings to keep with name and type only. */
function kept(binding: unknown, known: ReadonlyMap<string, string>): unknown {
  const { name, type, ...rest } = (binding ?? {}) as { name?: string; type?: string };
  const isKept = name !== undefined && known.get(name) === type && Object.keys(rest).length === 0;
  return isKept ? { type: "inherit", name } : binding;
}

function readCommon(given: Common): VersionInput & { settings: Partial<ScriptSettings> } {
  const { limits, placement } = given;
  return {
    compatibilityDate: given.compatibility_date,
    compatibilityFlags: given.compatibility_flags,
    limits:
      limits == null
        ? limits
        : {
            ...(limits.cpu_ms === undefined ? {} : { cpuMs: limits.cpu_ms }),
            ...(limits.subrequests === undefined ? {} : { subRequests: limits.subrequests }),
          },
    placement,
    usageModel: given.usage_model,
    annotations: given.annotations,
    settings: readScriptSettings(given),
  };
}

/** Parses the settings that belong to no version. Absent ones stay as they are. */
export function readScriptSettings(
  given: Pick<Common, "logpush" | "observability" | "tail_consumers">,
): Partial<ScriptSettings> {
  if ((given.tail_consumers?.length ?? 0) > 0)
    throw scriptErrors.invalid("tail_consumers are not supported here", "/metadata/tail_consumers");
  const { logpush, observability } = given;
  return {
    ...(logpush === undefined ? {} : { logpush }),
    ...(observability === undefined ? {} : { observability }),
  };
}

async function readCode(
  files: UploadForm["files"],
  { main_module: mainModule, body_part }: Pick<z.output<typeof MetadataSchema>, "main_module" | "body_part">,
  hasAssets: boolean,
  messages: ApiMessage[],
): Promise<ScriptCode> {
  if (mainModule !== undefined) return readModuleCode(files, mainModule, messages);
  if (body_part === undefined && hasAssets && files.length === 0)
    return { mainModule: "", modules: [], sourceMaps: [] };
  if (body_part !== undefined) return readServiceWorkerCode(files, body_part, messages);
  throw scriptErrors.invalid(
    "Expected the name of the entry module for main_module, or of the script's one file for body_part, but received neither",
    "/metadata/main_module",
  );
}

/** As `readUpload`, for an upload of code only. Headers may name the entry module instead of the metadata. */
export async function readContent(
  form: UploadForm,
  headers: IncomingHttpHeaders,
  messages: ApiMessage[],
): Promise<ScriptCode> {
  const metadata = validate(MetadataSchema, form.metadata, "metadata");
  const main_module = metadata.main_module ?? named(headers["cf-worker-main-module-part"]);
  const body_part = metadata.body_part ?? named(headers["cf-worker-body-part"]);
  for (const field of Object.keys(metadata)) {
    if (field !== "main_module" && field !== "body_part")
      messages.push({
        code: 10021,
        message: `The metadata has the field "${field}", which was ignored: this operation replaces the code alone`,
      });
  }
  return readCode(form.files, { main_module, body_part }, false, messages);
}

const named = (header: string | string[] | undefined): string | undefined =>
  typeof header === "string" && header !== "" ? header : undefined;

function readAssets(
  { assets, keep_assets: keeps }: z.output<typeof MetadataSchema>,
  messages: ApiMessage[],
): AssetsInput | undefined {
  if (assets === undefined) return keeps === true ? { keep: true, config: undefined } : undefined;
  const given = assets.config === undefined ? undefined : readAssetConfig(assets.config);
  for (const message of given?.warnings ?? []) messages.push({ code: 10021, message });
  if (assets.jwt !== undefined)
    return { completionToken: assets.jwt, config: (given ?? readAssetConfig({})).config };
  if (keeps === true) return { keep: true, config: given?.config };
  throw scriptErrors.invalid(
    "Expected the completion token of an asset upload for assets.jwt, or keep_assets, but received neither",
    "/metadata/assets/jwt",
  );
}

function refuseUnsupported(
  metadata: Record<string, unknown>,
  schema: z.ZodObject,
  messages: ApiMessage[],
): void {
  for (const [field, product] of Object.entries(absentProducts)) {
    if (!asksForSomething(metadata[field])) continue;
    throw scriptErrors.absentProduct(product, `${field} is ${show(metadata[field])}`, `/metadata/${field}`);
  }
  for (const field of unsupported) {
    if (asksForSomething(metadata[field]))
      throw scriptErrors.invalid(
        `${field} is not supported here, but received ${show(metadata[field])}`,
        `/metadata/${field}`,
      );
  }
  for (const [field, why] of Object.entries(keptOnly)) {
    if (asksForSomething(metadata[field]))
      messages.push({ code: 10021, message: `${field} is kept, but changes nothing: ${why}` });
  }
  for (const field of Object.keys(metadata)) {
    const isKnown = field in schema.shape || harmless.has(field) || Object.hasOwn(absentProducts, field);
    if (isKnown || unsupported.some((each) => each === field)) continue;
    messages.push({
      code: 10021,
      message: `The metadata has the field "${field}", which is unknown here and was ignored`,
    });
  }
}

function asksForSomething(value: unknown): boolean {
  if (value == null || value === false || value === "") return false;
  if (Array.isArray(value)) return value.length > 0;
  if (typeof value !== "object") return true;
  return Object.values(value).some(asksForSomething);
}
