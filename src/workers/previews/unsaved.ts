import type { ApiMessage } from "../../control/api/envelope.ts";
import type { UploadForm } from "../../control/api/upload-form.ts";
import { DomainErrors } from "../../platform/domain-error.ts";
import { newUuid } from "../../platform/util/ids.ts";
import { clock } from "../../platform/timers/clock.ts";
import type { Binding, InheritBinding } from "../bindings.ts";
import type { BindingRegistry } from "../binding-registry.ts";
import { scriptErrors } from "../scripts/errors.ts";
import type { RuntimeScript } from "../scripts/runtime-script.ts";
import type { Script, ScriptVersion } from "../scripts/script.ts";
import { missingResources, readBindings } from "../scripts/versions/bindings.ts";
import { inspected, type ScriptCode } from "../scripts/versions/code.ts";
import { readModuleCode, readServiceWorkerCode } from "../scripts/versions/modules.ts";
import type { Versions } from "../scripts/versions/versions.ts";
import { previewErrors } from "./errors.ts";
import type { PreviewMetadata } from "./metadata.ts";

type ObjectBinding = Extract<Binding, { type: "durable_object_namespace" }>;

/** The services that read a version without storing it. */
export interface UnsavedServices {
  versions: Versions;
  bindings: BindingRegistry;
}

/** Reads the code of an upload form. */
export async function readCode(
  { files }: UploadForm,
  { main_module: mainModule, body_part: bodyPart }: PreviewMetadata,
  messages: ApiMessage[],
): Promise<ScriptCode> {
  if (mainModule !== undefined) return readModuleCode(files, mainModule, messages);
  if (bodyPart !== undefined) return readServiceWorkerCode(files, bodyPart, messages);
  throw scriptErrors.invalid(
    "Expected the name of the entry module for main_module, or of the script's one file for body_part, but received neither",
    "/metadata/main_module",
  );
}

/**
 * A version that is stored nowhere. It is checked as an upload is; what the metadata does not say is as in `base`,
 * the version that visitors get.
 */
export async function unsavedVersion(
  { versions, bindings: registry }: UnsavedServices,
  script: Script,
  base: ScriptVersion,
  code: ScriptCode,
  metadata: PreviewMetadata,
): Promise<RuntimeScript> {
  const { content } = base;
  const { modules, inspected: properties, exportNames } = await inspected(script.accountId, code);
  const bindings = bindingsOf(metadata, base, script, registry);
  const errors = await missingResources(
    bindings.filter((binding): binding is Binding => binding.type !== "inherit"),
    registry,
    {
      accountId: script.accountId,
      scriptName: script.name,
      hasAssets: content.assets !== null,
      classNames: exportNames,
    },
  );
  if (errors.length > 0) throw new DomainErrors(errors);
  const keepBindings = metadata.keep_bindings ?? ["secret_text"];
  const id = newUuid();
  const limits = limitsOf(metadata.limits) ?? content.limits;
  return {
    ...properties,
    id,
    scriptId: script.id,
    accountId: script.accountId,
    name: script.name,
    modules,
    compatibilityDate: metadata.compatibility_date ?? content.compatibilityDate,
    compatibilityFlags: metadata.compatibility_flags ?? content.compatibilityFlags,
    bindings: await versions.opened(script.id, base, { bindings, keepBindings }),
    ...(limits === null ? {} : { limits }),
    ...(content.assets === null ? {} : { assets: content.assets }),
    version: { id, tag: "", timestamp: new Date(clock.now()).toISOString() },
    objectClasses: (content.objectClasses ?? []).filter((name) => exportNames?.has(name) !== false),
  };
}

const limitsOf = (given: PreviewMetadata["limits"]): RuntimeScript["limits"] =>
  given && {
    ...(given.cpu_ms === undefined ? {} : { cpuMs: given.cpu_ms }),
    ...(given.subrequests === undefined ? {} : { subRequests: given.subrequests }),
  };

/** Without bindings in the metadata, all of the script's. */
function bindingsOf(
  { bindings: given }: PreviewMetadata,
  { content }: ScriptVersion,
  script: Script,
  registry: BindingRegistry,
): (Binding | InheritBinding)[] {
  if (given === undefined) return content.bindings.map(({ name }) => ({ type: "inherit", name }));
  const known = content.bindings.filter(
    (each): each is ObjectBinding => each.type === "durable_object_namespace",
  );
  return readBindings(given, "metadata/bindings", registry).map((binding) =>
    binding.type === "durable_object_namespace" ? withNamespace(binding, known, script.name) : binding,
  );
}

/** The binding with the namespace of its class. An upload finds or makes that when it is stored. */
function withNamespace(binding: ObjectBinding, known: readonly ObjectBinding[], own: string): ObjectBinding {
  const { namespace_id: id, class_name: className, script_name: scriptName = own } = binding;
  const found = known.find((each) =>
    id === undefined
      ? each.class_name === className && (each.script_name ?? own) === scriptName
      : each.namespace_id === id,
  );
  if (found === undefined) throw previewErrors.object(binding.name);
  return { ...found, name: binding.name };
}
