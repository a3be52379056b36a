import type { Binding, BindingOf } from "../bindings.ts";
import type { ScriptAssets } from "../assets/config.ts";
import type { NamedHandler } from "./runtime-script.ts";

/** The owner of a script: an account, or a dispatch namespace of it. */
export interface ScriptOwner {
  accountId: string;
  namespace?: { id: string; name: string };
}

/** The scope in which names of scripts are unique. */
export const ownerId = (owner: ScriptOwner): string => owner.namespace?.id ?? owner.accountId;

/** The parts of a script that belong to no version. */
export interface ScriptSettings {
  logpush: boolean;
  observability: Record<string, unknown> | null;
  tailConsumers: readonly unknown[] | null;
}

/** A live version, with its percentage of the requests. */
export interface VersionShare {
  versionId: string;
  percentage: number;
}

/** A script of an account or of a dispatch namespace, without its versions. Times are epoch milliseconds. */
export interface Script {
  /** Also its tag: 32 hex characters. */
  id: string;
  accountId: string;
  namespaceId: string | null;
  ownerId: string;
  name: string;
  tags: readonly string[];
  settings: ScriptSettings;
  /** The live versions: one, or two with their percentages; none for a script that was only uploaded. */
  live: readonly VersionShare[];
  versionCount: number;
  subdomainEnabled: boolean;
  previewsEnabled: boolean;
  /** The tag of the last migration of its classes of Durable Objects. */
  migrationTag: string | null;
  createdOn: number;
  modifiedOn: number;
}

/** A binding as stored: the text of a secret is encrypted. */
export type StoredBinding =
  | Exclude<Binding, BindingOf<"secret_text">>
  | { type: "secret_text"; name: string; sealed: string };

/** The author of a version or deployment. */
export interface Author {
  id: string;
  email: string;
  /** The name of the client, shown as `last_deployed_from` and `source`. */
  client: string;
}

/** The content of a version, without its code. */
export interface VersionContent {
  mainModule: string;
  compatibilityDate: string;
  compatibilityFlags: readonly string[];
  bindings: readonly StoredBinding[];
  limits: { cpuMs?: number; subRequests?: number } | null;
  placement: Record<string, unknown> | null;
  usageModel: string;
  assets: ScriptAssets | null;
  etag: string;
  /** Time that the code took until it waited for requests. */
  startupTimeMs: number;
  handlers: readonly string[];
  namedHandlers: readonly NamedHandler[];
  /** Undefined for versions from before source maps were stored. */
  hasSourceMaps?: boolean;
  /** The classes with Durable Objects; undefined for versions from before there were any. */
  objectClasses?: readonly string[];
  /** Classes with Durable Objects that the script expects from others, with the names of those scripts. */
  objectTransfers?: Readonly<Record<string, string>>;
  /** Time that a busy object may go on with the previous version. */
  codeUpdateDelayMs?: number;
  annotations: Readonly<Record<string, string>>;
  author: Author;
}

/** A version of a script, which never changes. `codeId` refers to the modules. */
export interface ScriptVersion {
  id: string;
  scriptId: string;
  /** 1 for the first version of a script. */
  number: number;
  codeId: string;
  content: VersionContent;
  createdOn: number;
}

/** A record of the versions that a script had live from `createdOn` on. */
export interface Deployment {
  id: string;
  scriptId: string;
  versions: readonly VersionShare[];
  source: string;
  authorEmail: string;
  annotations: Readonly<Record<string, string>>;
  createdOn: number;
}
