import { ApiError, apiErrors } from "../../control/api/errors.ts";
import type { Binding, BindingOf } from "./versions/bindings.ts";
import type { NamedHandler, ScriptAssets } from "./runtime-script.ts";

/** The owner of a script: an account, or a dispatch namespace of it. */
export interface Owner {
  accountId: string;
  namespace?: { id: string; name: string };
}

/** The scope in which names of scripts are unique. */
export const ownerId = (owner: Owner): string => owner.namespace?.id ?? owner.accountId;

/** The parts of a script that belong to no version. */
export interface ScriptSettings {
  logpush: boolean;
  observability: Record<string, unknown> | null;
  tailConsumers: readonly unknown[] | null;
}

export interface Share {
  versionId: string;
  percentage: number;
}

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
  live: readonly Share[];
  versionCount: number;
  subdomainEnabled: boolean;
  previewsEnabled: boolean;
  createdOn: number;
  modifiedOn: number;
}

/** A binding as stored: the text of a secret is encrypted. */
export type StoredBinding =
  | Exclude<Binding, BindingOf<"secret_text">>
  | { type: "secret_text"; name: string; sealed: string };

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
  annotations: Readonly<Record<string, string>>;
  author: Author;
}

export interface Version {
  id: string;
  scriptId: string;
  /** 1 for the first version of a script. */
  number: number;
  codeId: string;
  content: VersionContent;
  createdOn: number;
}

export interface Deployment {
  id: string;
  scriptId: string;
  versions: readonly Share[];
  source: string;
  authorEmail: string;
  annotations: Readonly<Record<string, string>>;
  createdOn: number;
}

export const scriptErrors = {
  notFound: (owner: Owner, name: string) =>
    owner.namespace === undefined
      ? new ApiError(404, 10007, `This Worker does not exist on your account: "${name}"`)
      : new ApiError(
          404,
          10092,
          `The script "${name}" does not exist in the dispatch namespace "${owner.namespace.name}"`,
        ),
  invalid: (message: string, pointer?: string) => new ApiError(400, 10021, message, { pointer }),
  /** `what` is the part of the upload that needs the product, such as "migrations are {…}". */
  absentProduct: (product: string, what: string, pointer: string) => {
    const { code, message } = apiErrors.absentProduct(product);
    return new ApiError(400, 10021, `${message}: ${what}`, { pointer, chain: [{ code, message }] });
  },
  rename: (name: string) =>
    new ApiError(400, 10017, `The script "${name}" cannot be renamed: upload it under its new name`, {
      pointer: "/body/name",
    }),
  exists: (name: string) => new ApiError(409, 10018, `A script with the name "${name}" exists already`),
  versionIsLive: () => new ApiError(400, 10217, "A version that serves requests cannot be deleted"),
  tooLarge: (limitBytes: number) =>
    new ApiError(413, 10027, `The script is too large. Expected at most ${limitBytes} bytes of modules`),
  name: (name: string, expected: string) =>
    new ApiError(400, 10016, `Expected a script name of ${expected} but received ${JSON.stringify(name)}`),
  inherit: (name: string, why: string) =>
    new ApiError(400, 10057, `The binding "${name}" cannot be inherited: ${why}`),
  versionNotFound: (id: string) => new ApiError(404, 10222, `The script has no version "${id}"`),
  noVersions: () => new ApiError(404, 10222, "The script has no versions"),
  deploymentNotFound: (id: string) => new ApiError(404, 10213, `The script has no deployment "${id}"`),
  percentages: (sum: number) =>
    new ApiError(400, 10216, `Expected percentages that add up to 100 but received ${sum}`, {
      pointer: "/body/versions",
    }),
  deploymentIsLive: () =>
    new ApiError(400, 10214, "The latest deployment cannot be deleted: it serves requests"),
  latestNotDeployed: () =>
    new ApiError(
      400,
      10215,
      "The latest version of the script is not deployed to all requests, so its settings cannot be changed in place. Deploy it first, or upload a new version",
    ),
  bindingNotFound: (name: string) =>
    new ApiError(404, 10056, `Binding not found: there is no secret "${name}"`),
  bindingIsTaken: (name: string, type: string) =>
    new ApiError(
      400,
      10053,
      `Binding name "${name}" already in use: a binding of type ${type} has it. Give the secret another name, or remove that binding first`,
    ),
  tagNotFound: (tag: string) => new ApiError(404, 10096, `The script has no tag "${tag}"`),
  tooManyTags: (max: number) => new ApiError(400, 10097, `Expected at most ${max} tags for a script`),
  tagFilter: (text: string) =>
    new ApiError(
      400,
      10098,
      `Expected tags as <tag>:yes or <tag>:no, separated by commas, but received ${JSON.stringify(text)}`,
      { pointer: "/query/tags" },
    ),
  referenced: (name: string, by: readonly string[]) =>
    new ApiError(
      400,
      10064,
      `The script "${name}" is used by ${by.slice(0, 5).join(", ")}. Delete it with force=true, or remove the bindings first`,
    ),
};
