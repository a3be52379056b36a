import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { readUploadForm } from "../../control/api/upload-form.ts";
import { validate } from "../../control/api/validation.ts";
import type { RequestCf } from "../../edge/client-info/request-cf.ts";
import { editAccess, accountScripts } from "../scripts/api-collection.ts";
import type { Script, ScriptVersion } from "../scripts/script.ts";
import type { Scripts } from "../scripts/scripts.ts";
import { readForm } from "../scripts/versions/api-code.ts";
import type { Versions } from "../scripts/versions/versions.ts";
import type { SourceMaps } from "../stack-traces/source-maps.ts";
import type { BindingRegistry } from "../binding-registry.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { loadedOf, type LoadedScript } from "../runtime/script-cache.ts";
import type { RunLimits } from "../runtime/run-context.ts";
import type { RuntimeScript } from "../scripts/runtime-script.ts";
import { allErrorCodes } from "./api-errors.ts";
import { previewRequest } from "./asked.ts";
import { PreviewMetadataSchema } from "./metadata.ts";
import type { Previews } from "./previews.ts";
import { previewResource, PreviewSchema } from "./resource.ts";
import { runPreview, type PreviewWork } from "./run.ts";
import { readCode, unsavedVersion } from "./unsaved.ts";

/** The services that this operation uses. */
interface Services {
  scripts: Scripts;
  versions: Versions;
  bindings: BindingRegistry;
  runtime: Runtime;
  sourceMaps: SourceMaps;
  requestCf: RequestCf;
  previews: Previews;
  previewOptions: { colo: string; limits: RunLimits & { memoryBytes: number } };
}

const { operation } = operationsFor<Services>(allErrorCodes);

const previewOperation = operation({
  id: "script_preview",
  // It changes no setting, but the code acts on the account's data, and sees the script's secrets.
  audit: "ahead",
  method: "POST",
  path: `${accountScripts.path}/{script_name}/edge/preview`,
  summary: "Run code that is not deployed, for one request, with the bindings of a script",
  access: editAccess,
  body: z.object({ metadata: PreviewMetadataSchema }),
  bodyKind: "own",
  answersSecret: true,
  result: PreviewSchema,
  async handle({ account, params, incoming, clientIp, messages, services }) {
    const form = await readForm({ incoming, services }, readUploadForm);
    const script = services.scripts.get({ accountId: account.id }, params["script_name"]!);
    const metadata = validate(PreviewMetadataSchema, form.metadata, "metadata");
    const base = await baseOf(services.versions, script);
    const { requestCf, runtime, sourceMaps, previewOptions } = services;
    const asked = previewRequest(metadata.request, {
      clientAddress: clientIp.replace(/^::ffff:(?=\d+\.)/, ""),
      requestCf,
      colo: previewOptions.colo,
    });
    const code = await readCode(form, metadata, messages);
    const unsaved = await unsavedVersion(services, script, base, code, metadata);
    const work: PreviewWork = {
      runtime,
      shown: async (stacks) => sourceMaps.shown(undefined, stacks),
      loaded: loadedLike(unsaved, base, services),
      asked,
      timeoutMs: metadata.timeout_ms,
    };
    const run = await services.previews.run(account.id, incoming.socket, async (cell) =>
      runPreview(cell, work),
    );
    return previewResource(run);
  },
});

/** The version that visitors get; the latest one if they get none. */
const baseOf = async (versions: Versions, script: Script): Promise<ScriptVersion> =>
  script.live.length > 0 ? versions.current(script) : versions.latest(script);

/**
 * Bindings see the version that it is based on, whose assets they serve. The slots of its subrequests are its own, so
 * that it keeps no visitors waiting.
 */
function loadedLike(unsaved: RuntimeScript, base: ScriptVersion, services: Services): LoadedScript {
  const loaded = loadedOf(unsaved, services.previewOptions.limits, services.bindings);
  return {
    ...loaded,
    caller: { ...loaded.caller, versionId: base.id },
    cell: { ...loaded.cell, owner: `preview of ${loaded.cell.owner}` },
    group: undefined,
    mayBeNear: false,
  };
}

export const previewOperations = [previewOperation];
