import { get, nextCursor } from "../../../core/client.ts";

/** A change as the log of the account lists it. */
export interface Entry {
  id: string;
  action: { description: string; result: "success" | "failure"; time: string; type: string };
  actor: { email?: string; token_id?: string; token_name?: string; ip_address?: string; type: string };
  raw: { method?: string; uri?: string; status_code?: number; cf_ray_id?: string; user_agent?: string };
  resource: { id?: string; product: string; type: string; request?: unknown; before?: unknown };
  zone?: { id?: string; name?: string };
}

/** A change as the log of the user lists it, which has the form of version 1. */
interface UserEntry {
  id: string;
  action: { result: boolean; type: string };
  actor: { email?: string; ip?: string; type: string };
  metadata: {
    action?: string;
    action_type?: string;
    zone_name?: string;
    token_id?: string;
    token_name?: string;
  };
  newValue: string;
  oldValue: string;
  resource: { id?: string; type: string };
  when: string;
}

/** The changes in an account, or those of the user in all accounts and outside: of tokens, of the user itself. */
export type Log = "account" | "user";

export interface PartQuery {
  since: string;
  limit: number;
  /** Where the part before ended. */
  cursor: string | undefined;
  /** Only changes of this resource; empty for all. */
  resource: string;
  /** Whether calls that only read are listed too. */
  withReads: boolean;
}

interface Part {
  entries: Entry[];
  /** Undefined at the end. */
  cursor: string | undefined;
}

const soon = (): string => new Date(Date.now() + 60_000).toISOString();

/** A part of a log, the newest entries first. */
export async function partOf(log: Log, account: string, query: PartQuery): Promise<Part> {
  const { since, limit, cursor, resource, withReads } = query;
  if (log === "account") {
    const search = new URLSearchParams({
      since,
      before: soon(),
      limit: String(limit),
      ...(cursor !== undefined && { cursor }),
      ...(resource !== "" && { resource_id: resource }),
      ...(!withReads && { "action_type.not": "view" }),
    });
    const { result, info } = await get<Entry[]>(`/accounts/${account}/logs/audit?${search}`);
    return { entries: result, cursor: nextCursor(info) };
  }
  // This log has pages. The time of the first one keeps new entries out of the others.
  const [page = "1", before = soon()] = cursor?.split(" ") ?? [];
  const search = new URLSearchParams({ since, before, page, per_page: String(userPage) });
  const { result } = await get<UserEntry[]>(`/user/audit_logs?${search}`);
  const all = result.map(entryOf).filter(({ action }) => withReads || action.type !== "view");
  return {
    entries: resource === "" ? all : all.filter((entry) => entry.resource.id === resource),
    cursor: result.length < userPage ? undefined : `${Number(page) + 1} ${before}`,
  };
}

const userPage = 100;

const entryOf = ({ id, action, actor, metadata, resource, when, ...values }: UserEntry): Entry => ({
  id,
  action: {
    description: metadata.action ?? action.type,
    result: action.result ? "success" : "failure",
    time: when,
    type: metadata.action_type ?? action.type,
  },
  actor: {
    type: actor.type,
    ...(actor.email !== undefined && { email: actor.email }),
    ...(actor.ip !== undefined && { ip_address: actor.ip }),
    ...(metadata.token_id !== undefined && { token_id: metadata.token_id }),
    ...(metadata.token_name !== undefined && { token_name: metadata.token_name }),
  },
  raw: {},
  resource: {
    product: resource.type,
    type: resource.type,
    ...(resource.id !== undefined && { id: resource.id }),
    ...(values.newValue !== "" && { request: parsed(values.newValue) }),
    ...(values.oldValue !== "" && { before: parsed(values.oldValue) }),
  },
  ...(metadata.zone_name !== undefined && { zone: { name: metadata.zone_name } }),
});

/** A value is cut when it is long, and then no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
