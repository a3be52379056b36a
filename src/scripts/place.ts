import { apiErrors } from "../api/errors.ts";
import type { Call } from "../api/operation.ts";
import { scriptErrors, type Author, type Owner, type Script } from "./script.ts";

export type AnyCall = Call<unknown, unknown>;

/** Where scripts are in the API. The operations on one are the same in an account and in a dispatch namespace. */
export interface Place {
  /** Begins the ids of operations. */
  id: string;
  /** Of the list of scripts. */
  path: string;
  /** How summaries call a script. */
  noun: string;
  owner(call: AnyCall): Owner;
}

export const accountPlace: Place = {
  id: "script",
  path: "/accounts/{account_id}/workers/scripts",
  noun: "script",
  owner: ({ account }) => ({ accountId: account.id }),
};

export const readAccess = { scope: "account", permission: "workers_scripts:read" } as const;
export const editAccess = { scope: "account", permission: "workers_scripts:edit" } as const;

export const nameOf = ({ params }: AnyCall): string => params["script_name"]!;

/** The script that the path names. */
export function scriptOf(place: Place, call: AnyCall): Script {
  return call.services.scripts.get(place.owner(call), nameOf(call));
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

/** Refuses a name that no new script may have: that of an account's script is a label of its host name. */
export function checkNewName(owner: Owner, name: string): void {
  const { pattern, text } = owner.namespace === undefined ? names.account : names.namespace;
  if (!pattern.test(name)) throw scriptErrors.name(name, text);
}

/** An account's script by its name, or by its id. */
export function byNameOrId(call: AnyCall, text: string): Script {
  const owner = accountPlace.owner(call);
  const { scripts } = call.services;
  const found = scripts.find(owner, text) ?? scripts.list(owner).find(({ id }) => id === text);
  if (found === undefined) throw scriptErrors.notFound(owner, text);
  return found;
}

/** Who makes a change, and with which program. */
export function authorOf({ actor, services, incoming }: AnyCall): Author {
  const user = actor.userId === null ? undefined : services.accounts.findUser(actor.userId);
  const agent = incoming.headers["user-agent"] ?? "";
  return {
    id: actor.userId ?? actor.id,
    email: user?.email ?? "",
    client: agent.startsWith("wrangler/") ? "wrangler" : "api",
  };
}

/** Whether a script has the tags that a query such as `production:yes,staging:no` asks for. */
export function tagFilter(query: string): (script: Script) => boolean {
  const wanted = query.split(",").map((each) => {
    const [, tag, answer] = /^(.+):(yes|no)$/.exec(each) ?? [];
    if (tag === undefined) throw scriptErrors.tagFilter(query);
    return { tag, has: answer === "yes" };
  });
  return ({ tags }) => wanted.every(({ tag, has }) => tags.includes(tag) === has);
}

/** An id in the path that is a UUID, as those of versions and deployments are. */
export function uuidOf({ params, incoming }: AnyCall, parameter: string): string {
  const id = params[parameter]!;
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id) || /^[0-9a-f]{32}$/.test(id)) return id;
  throw apiErrors.noRoute(incoming.method ?? "", (incoming.url ?? "").split("?", 1)[0]!);
}
