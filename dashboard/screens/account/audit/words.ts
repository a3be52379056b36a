import { useGet } from "../../../core/cache.ts";
import { useRefusal } from "../../../core/permissions.ts";
import type { Entry } from "./log.ts";

/** The first statement of an operation's summary; of several verbs, the one that the call names as the new status. */
export function titleOf({ action, resource }: Entry): string {
  const [short = ""] = action.description.split(
    /\. |: |, which |, or change nothing| without a call of the API/,
  );
  const { status } = (resource.request ?? {}) as { status?: unknown };
  const [, list = "", rest = ""] = /^((?:\w+, )*\w+ or \w+) (.*)$/.exec(short) ?? [];
  const verb = list
    .toLowerCase()
    .split(/, | or /)
    .find((each) => each === status);
  return verb === undefined ? short : `${verb[0]!.toUpperCase()}${verb.slice(1)} ${rest}`;
}

const nameFields = ["name", "queue_name", "title", "filename", "snippet_name"];

/** The name of the changed resource, as the call or the resource before it has it. */
export function nameOf({ request, before }: Entry["resource"]): string | undefined {
  const named = [request, before].flatMap((each) =>
    nameFields.map((field) => (each as Record<string, unknown> | null | undefined)?.[field]),
  );
  return named.find((name): name is string => typeof name === "string");
}

/** The parts of a place that are known, each one once. */
export const joined = (...parts: (string | undefined)[]): string =>
  [...new Set(parts.filter(Boolean))].join(" · ");

/** The path of a call below its account or zone, with names in place of the ids that are known. */
export function placeOf({ uri = "" }: Entry["raw"], names: ReadonlyMap<string, string>): string {
  const path = uri.replace(/^\/client\/v4\//, "").replace(/^(accounts|zones)\/[^/]+\//, "");
  return path
    .split("/")
    .map((part) => names.get(part) ?? decoded(part))
    .join("/");
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The names of the account's resources that paths name by id. A list is read only if an entry has such a path. */
export function useNames(account: string, entries: readonly Entry[]): ReadonlyMap<string, string> {
  const refusal = useRefusal();
  const has = (part: string): boolean => entries.some(({ raw }) => raw.uri?.includes(part) === true);
  const pathOf = (list: string): string | undefined =>
    has(`/${list}/`) && refusal(`GET /accounts/{account_id}/${list}`) === undefined
      ? `/accounts/${account}/${list}?per_page=100`
      : undefined;
  const queues = useGet<{ queue_id: string; queue_name: string }[]>(pathOf("queues"));
  const namespaces = useGet<{ id: string; title: string }[]>(pathOf("storage/kv/namespaces"));
  const databases = useGet<{ uuid: string; name: string }[]>(pathOf("d1/database"));
  return new Map([
    ...(queues.data ?? []).map(({ queue_id, queue_name }) => [queue_id, queue_name] as const),
    ...(namespaces.data ?? []).map(({ id, title }) => [id, title] as const),
    ...(databases.data ?? []).map(({ uuid, name }) => [uuid, name] as const),
  ]);
}
