import type { AssetConfig } from "../../assets/config.ts";
import type { RuntimeScript } from "../runtime-script.ts";
import type { ScriptOwner, ScriptSettings, VersionContent } from "../script.ts";
import type { Binding, InheritBinding } from "../../bindings.ts";
import type { ScriptCode } from "./code.ts";
import type { Migrations } from "./object-classes.ts";
import type { ObjectExports } from "./object-exports.ts";

/** Storage of static assets. A version refers to a manifest that never changes. */
export interface AssetManifests {
  /** Returns the manifest of a completed upload for this script. Throws if the token is invalid. */
  complete(owner: ScriptOwner, scriptName: string, completionToken: string): Promise<string>;
}

/** The time that code took until it waited for requests, or the reason why it failed. */
export interface Started {
  tookMs: number;
  fault: string | undefined;
}
export type Start = (script: RuntimeScript) => Promise<Started>;

/** Static assets of a new version: of an upload, or those of the previous version. */
export type AssetsInput =
  | { completionToken: string; config: AssetConfig }
  | { keep: true; config: AssetConfig | undefined };

/** The changes of a new version. Undefined fields of a revision keep the previous value. */
export interface VersionInput {
  bindings?: readonly (Binding | InheritBinding)[] | undefined;
  /** Binding types of the previous version that are kept unless a new binding has the same name. */
  keepBindings?: readonly string[] | undefined;
  compatibilityDate?: string | undefined;
  compatibilityFlags?: readonly string[] | undefined;
  limits?: VersionContent["limits"] | undefined;
  placement?: VersionContent["placement"] | undefined;
  usageModel?: string | undefined;
  assets?: AssetsInput | undefined;
  annotations?: Readonly<Record<string, string>> | undefined;
}

export interface Revision extends VersionInput {
  /** Whether the version is deployed at once; true by default. */
  deploy?: boolean | undefined;
  code?: ScriptCode | undefined;
  tags?: readonly string[] | undefined;
  settings?: Partial<ScriptSettings> | undefined;
  migrations?: Migrations | undefined;
  exports?: ObjectExports | undefined;
  /** Time that busy Durable Objects may go on with the previous version. */
  codeUpdateDelayMs?: number | undefined;
}

export type VersionUpload = Revision & { code: ScriptCode };

/** The settings of a version after a change. */
export const withSettings = (
  { limits, placement, usageModel }: VersionContent,
  change: Revision,
): Pick<VersionContent, "limits" | "placement" | "usageModel" | "annotations"> => ({
  limits: change.limits === undefined ? limits : change.limits,
  placement: change.placement === undefined ? placement : change.placement,
  usageModel: change.usageModel ?? usageModel,
  annotations: change.annotations ?? {},
});
