import type { BindingRegistry } from "../binding-registry.ts";
import { apiErrors } from "../../control/api/errors.ts";
import type { Accounts } from "../../control/accounts/accounts.ts";
import type { Call } from "../../control/api/operation.ts";
import type { Zones } from "../../control/zones/zones.ts";
import type { DispatchNamespaces } from "./namespaces/namespaces.ts";
import type { References } from "./references.ts";
import type { DomainRecords } from "./routing/domain-records.ts";
import type { Domains } from "./routing/domains.ts";
import type { ScriptRouter } from "./routing/router.ts";
import type { Routes } from "./routing/routes.ts";
import type { Subdomains } from "./routing/subdomains.ts";
import type { Scripts } from "./scripts.ts";
import type { Deployments } from "./versions/deployments.ts";
import type { Versions } from "./versions/versions.ts";
import type { Author, ScriptOwner, Script } from "./script.ts";
import { scriptErrors, scriptNotFound } from "./errors.ts";

/** The services that the operations of scripts use. */
export interface ScriptServices {
  bindings: BindingRegistry;
  accounts: Accounts;
  zones: Zones;
  scripts: Scripts;
  versions: Versions;
  deployments: Deployments;
  references: References;
  namespaces: DispatchNamespaces;
  routes: Routes;
  domains: Domains;
  domainRecords: DomainRecords;
  subdomains: Subdomains;
  scriptRouter: ScriptRouter;
}

export type AnyCall = Call<unknown, unknown, ScriptServices>;

/** A collection of scripts in the API: of an account or of a dispatch namespace. Both have the same operations. */
export interface ScriptCollection {
  /** Prefix of the operations' ids. */
  id: string;
  /** Path of the list of scripts. */
  path: string;
  /** The word for a script in summaries. */
  noun: string;
  owner(call: AnyCall): ScriptOwner;
}

export const accountScripts: ScriptCollection = {
  id: "script",
  path: "/accounts/{account_id}/workers/scripts",
  noun: "script",
  owner: ({ account }) => ({ accountId: account.id }),
};

export const readAccess = { scope: "account", permission: "workers_scripts:read" } as const;
export const editAccess = { scope: "account", permission: "workers_scripts:edit" } as const;

export const nameOf = ({ params }: AnyCall): string => params["script_name"]!;

/** The script that the path names. Throws if there is none. */
export function scriptOf(collection: ScriptCollection, call: AnyCall): Script {
  return call.services.scripts.get(collection.owner(call), nameOf(call));
}

const names = {
  account: {
    pattern: /^[a-z0-9_][a-z0-9_-]{0,62}$/,
    text: 'up to 63 lower-case letters, digits, "-" and "_"',
  },
  namespace: {
    pattern: /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$/,
    text: 'up to 255 letters, digits, "-", "_" and "."',
  },
};

/** Throws if a new script cannot have this name. The name of an account's script becomes a label of its host name. */
export function checkNewName(owner: ScriptOwner, name: string): void {
  const { pattern, text } = owner.namespace === undefined ? names.account : names.namespace;
  if (!pattern.test(name)) throw scriptErrors.name(name, text);
}

/** An account's script by name or id. Throws if there is none. */
export function byNameOrId(call: AnyCall, text: string): Script {
  const owner = accountScripts.owner(call);
  const { scripts } = call.services;
  const found = scripts.find(owner, text) ?? scripts.list(owner).find(({ id }) => id === text);
  if (found === undefined) throw scriptNotFound(owner, text);
  return found;
}

/** The author of a change, and the client that made it. */
export function authorOf({ actor, services, incoming }: AnyCall): Author {
  const user = actor.userId === null ? undefined : services.accounts.findUser(actor.userId);
  const agent = incoming.headers["user-agent"] ?? "";
  return {
    id: actor.userId ?? actor.id,
    email: user?.email ?? "",
    client: agent.startsWith("wrangler/") ? "wrangler" : "api",
  };
}

/** Returns a filter for the tags in a query such as `production:yes,staging:no`. */
export function tagFilter(query: string): (script: Script) => boolean {
  const wanted = query.split(",").map((each) => {
    const [, tag, answer] = /^(.+):(yes|no)$/.exec(each) ?? [];
    if (tag === undefined) throw scriptErrors.tagFilter(query);
    return { tag, has: answer === "yes" };
  });
  return ({ tags }) => wanted.every(({ tag, has }) => tags.includes(tag) === has);
}

/** Reads a UUID in the path, the id of a version or deployment. */
export function uuidOf({ params, incoming }: AnyCall, parameter: string): string {
  const id = params[parameter]!;
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id) || /^[0-9a-f]{32}$/.test(id)) return id;
  throw apiErrors.noRoute(incoming.method ?? "", (incoming.url ?? "").split("?", 1)[0]!);
}
