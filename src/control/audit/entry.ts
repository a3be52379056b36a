import type { z } from "zod";
import type { Account, Accounts } from "../accounts/accounts.ts";
import type { Actor } from "../access/actor.ts";
import { bodyOf } from "../api/body.ts";
import type { Call, Operation } from "../api/operation.ts";
import { boundedJson, shapeOf, withoutSecrets } from "../api/sensitive.ts";
import type { Change } from "../../platform/storage/storage.ts";
import type { Zone } from "../zones/zone.ts";
import type { Zones } from "../zones/zones.ts";
import { actionTypeOf, describe, isBookkeeping, productOfKind } from "./describe.ts";
import { newEntryId } from "./entry-id.ts";
import type { AuditEntry } from "./store.ts";

/** The parts of a call that its entry shows. An operation with the scope "own" has no actor. */
export type AuditedCall = Pick<
  Call<unknown, unknown, object>,
  "params" | "incoming" | "requestId" | "clientIp"
> & {
  actor: Actor | undefined;
  body?: unknown;
  query?: unknown;
  /** The resource before the change, as the handler has set it. */
  before?: unknown;
  account: { id: string; name: string } | undefined;
  zone: { id: string; name: string } | undefined;
  /** Set at the end of the call: whether it left an entry that its account or its user can read. */
  isAudited?: boolean;
};

/** The outcome of a call, as it is known at the end of its transaction. */
export interface CallOutcome {
  id: string;
  before: string | null;
  changes: readonly Change[];
  /** The result of the transaction. */
  result?: unknown;
  refusal?: { status: number; uncounted: number };
}

interface Directory {
  accounts: Pick<Accounts, "find" | "findUser">;
  zones: Pick<Zones, "find">;
}

/** An entry has at most 8 KB: these, and texts of at most 512 bytes each. */
const requestBytesMax = 3072;
const beforeBytesMax = 2048;
const idCharactersMax = 128;
const filesMax = 10;

/** A text of a column. PostgreSQL refuses NUL, which names in paths may contain. */
function cut(text: string, max: number): string {
  const clean = text.includes("\0") ? text.replaceAll("\0", "\u{fffd}") : text;
  return clean.length > max ? `${clean.slice(0, max - 1)}…` : clean;
}

/** The JSON of a resource, as an entry shows it before a change. */
export const beforeJson = (resource: unknown, schema: z.ZodType | undefined): string | null =>
  schema === undefined ? null : boundedJson(withoutSecrets(resource, shapeOf(schema)), beforeBytesMax);

/** The entry of a call of the API. */
export function entryOfCall(
  operation: Operation,
  call: AuditedCall,
  outcome: CallOutcome,
  directory: Directory,
): AuditEntry {
  const { product, type, scope } = describe(operation);
  const { refusal } = outcome;
  const { actor, zone, incoming } = call;
  const account = call.account ?? accountOf(outcome, directory);
  return {
    id: outcome.id,
    account_id: account?.id ?? "",
    account_name: account?.name === undefined ? null : cut(account.name, 100),
    zone_id: zone?.id ?? null,
    zone_name: zone?.name ?? null,
    action_result: refusal === undefined ? "success" : "failure",
    action_type: actionTypeOf(operation, call.body),
    operation: operation.id,
    description: cut(operation.summary, 200) + uncountedText(refusal?.uncounted ?? 0),
    ...actorColumns(actor, incoming.headers.authorization === undefined, directory),
    actor_ip_address: call.clientIp,
    raw_cf_ray_id: call.requestId,
    raw_method: operation.method,
    raw_status_code: refusal?.status ?? operation.status ?? 200,
    raw_uri: uriOf(operation, call),
    raw_user_agent:
      incoming.headers["user-agent"] === undefined ? null : cut(incoming.headers["user-agent"], 200),
    resource_id: resourceId(operation, call, outcome),
    resource_product: product,
    resource_scope: scope,
    resource_type: type,
    request: refusal === undefined ? requestJson(operation, call) : null,
    before: outcome.before,
  };
}

/** The zone and the account of a changed row, as they were before the transaction. */
function ownerOf(
  { id, parentId }: Change,
  { accounts, zones }: Directory,
): { zone: Zone | undefined; account: Account | undefined } {
  const zone = zones.find(parentId ?? id);
  return { zone, account: accounts.find(zone?.accountId ?? parentId ?? id) };
}

/** The changes of a call to resources of other accounts, by account: for example a zone that it displaced. */
export function foreignChanges(
  changes: readonly Change[],
  accountId: string | null,
  directory: Directory,
): readonly (readonly Change[])[] {
  if (accountId === null) return none;
  const lists = new Map<string, Change[]>();
  for (const change of changes) {
    if (isBookkeeping(change.kind)) continue;
    const owner: string = ownerOf(change, directory).account?.id ?? accountId;
    if (owner === accountId) continue;
    const list = lists.get(owner);
    if (list === undefined) lists.set(owner, [change]);
    else list.push(change);
  }
  return lists.size === 0 ? none : [...lists.values()];
}

const none: readonly never[] = [];

/**
 * The entry of a change that the system made, such as a sweep, a certificate's renewal or an activation; also of a change
 * that a call in another account made.
 */
export function entryOfSystem(
  changes: readonly Change[],
  directory: Directory,
  origin = "without a call of the API",
): AuditEntry {
  const [first] = changes;
  const { kind, id } = first!;
  const { zone, account } = ownerOf(first!, directory);
  const shown = changes
    .slice(0, 10)
    .map((change) => ({ kind: change.kind, id: cut(change.id, idCharactersMax) }));
  return {
    id: newEntryId(),
    account_id: account?.id ?? "",
    account_name: account === undefined ? null : cut(account.name, 100),
    zone_id: zone?.id ?? null,
    zone_name: zone?.name ?? null,
    action_result: "success",
    action_type: "update",
    operation: `system_${kind}`,
    description: `Change ${kind.replaceAll("_", " ")} ${origin}`,
    ...noActor,
    actor_type: "system",
    user_id: null,
    actor_ip_address: null,
    raw_cf_ray_id: null,
    raw_method: null,
    raw_status_code: null,
    raw_uri: null,
    raw_user_agent: null,
    resource_id: cut(id, idCharactersMax),
    resource_product: productOfKind(kind),
    resource_scope: zone === undefined ? "accounts" : "zones",
    resource_type: kind,
    request: boundedJson({ changes: shown, count: changes.length }, requestBytesMax),
    before: null,
  };
}

/** The account of a change whose path names none: of a created zone, of a membership. */
function accountOf(
  { changes, result }: CallOutcome,
  { accounts }: Directory,
): { id: string; name: string | undefined } | undefined {
  const named = (result as { accountId?: unknown } | null | undefined)?.accountId;
  const id = typeof named === "string" ? named : changes.find(({ kind }) => kind === "account")?.id;
  return id === undefined ? undefined : { id, name: accounts.find(id)?.name };
}

const uncountedText = (count: number): string =>
  count === 0 ? "" : ` (${count} more refused calls in the minute before left no entry)`;

const noActor = {
  actor_context: null,
  actor_email: null,
  actor_id: null,
  actor_token_id: null,
  actor_token_name: null,
};

/** A caller with a token but no Authorization header uses a session of the console. */
function actorColumns(actor: Actor | undefined, isSession: boolean, { accounts }: Directory) {
  if (actor === undefined) return { ...noActor, actor_type: "user", user_id: null } as const;
  const { userId } = actor;
  const email = userId === null ? undefined : accounts.findUser(userId)?.email;
  return {
    user_id: userId,
    actor_context: actor.kind === "key" ? "api_key" : isSession ? "dash" : "api_token",
    actor_email: email ?? null,
    actor_id: userId ?? actor.ownerId,
    actor_token_id: actor.kind === "token" ? actor.id : null,
    actor_token_name: actor.kind === "token" ? cut(actor.name, 120) : null,
    actor_type: userId === null ? "account" : "user",
  } as const;
}

/** The path of the call. Queries are left out, because some carry credentials. */
function uriOf({ access, path }: Operation, { incoming }: AuditedCall): string {
  // A caller without an actor has its credentials in the path.
  if (access.scope === "own") return cut(path, 400);
  const url = incoming.url ?? path;
  const end = url.indexOf("?");
  return cut(url.slice(0, end < 0 ? undefined : end), 400);
}

/** The resource that the path names last; for a created one, its id in the result or the first change. */
function resourceId(
  operation: Operation,
  call: AuditedCall,
  { result, changes }: CallOutcome,
): string | null {
  const { idParameter, action } = describe(operation);
  const named = idParameter === undefined ? undefined : call.params[idParameter];
  const isNew = action === "create" || named === undefined;
  // A caller without an actor may have its credentials in the path.
  if (operation.access.scope === "own") return null;
  const made = isNew ? ((result as { id?: unknown } | null | undefined)?.id ?? changes[0]?.id) : undefined;
  const id = typeof made === "string" ? made : (named ?? call.actor?.userId ?? null);
  return id === null ? null : cut(id, idCharactersMax);
}

function requestJson(operation: Operation, call: AuditedCall): string | null {
  if (operation.body === undefined) return null;
  const own = bodyOf(call.incoming);
  const shown = withoutSecrets(own === undefined ? call.body : own.value, shapeOf(operation.body));
  if (own?.files === undefined) return boundedJson(shown, requestBytesMax);
  const files = own.files.slice(0, filesMax).map(({ name, bytes }) => ({ name: cut(name, 100), bytes }));
  return boundedJson({ ...(shown as object), files, file_count: own.files.length }, requestBytesMax);
}
