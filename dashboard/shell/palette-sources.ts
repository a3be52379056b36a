import { get } from "../core/client.ts";

/** A resource that the palette has found. */
export interface Hit {
  label: string;
  detail: string;
  path: string;
}

interface Source {
  needs?: string;
  /** At most eight hits for a text; for an empty text, suggestions. */
  find(text: string, account: string): Promise<Hit[]>;
}

const hitsMax = 8;

/** Hits in a list that the server cannot search. It is read once for each palette. */
function listed<T>(
  needs: string,
  pathOf: (account: string) => string,
  hit: (item: T, account: string) => Hit,
): Source {
  let kept: { account: string; at: number; list: Promise<T[]> } | undefined;
  return {
    needs,
    async find(text, account) {
      if (text === "") return [];
      if (kept?.account !== account || Date.now() - kept.at > 30_000)
        kept = { account, at: Date.now(), list: get<T[]>(pathOf(account)).then(({ result }) => result) };
      const wanted = text.toLowerCase();
      return (await kept.list)
        .map((item) => hit(item, account))
        .filter(({ label }) => label.toLowerCase().includes(wanted))
        .slice(0, hitsMax);
    },
  };
}

/** The lists that the palette searches for names. */
export const sources: readonly Source[] = [
  {
    async find(text, account) {
      const query = new URLSearchParams({
        "account.id": account,
        per_page: String(hitsMax),
        ...(text !== "" && { name: `contains:${text}` }),
      });
      const { result } = await get<{ name: string }[]>(`/zones?${query}`);
      return result.map(({ name }) => ({
        label: name,
        detail: "zone",
        path: `/${account}/zones/${name}/dns`,
      }));
    },
  },
  listed<{ id: string }>(
    "workers_scripts:read",
    (account) => `/accounts/${account}/workers/scripts`,
    ({ id }, account) => ({
      label: id,
      detail: "script",
      path: `/${account}/scripts/${encodeURIComponent(id)}`,
    }),
  ),
  listed<{ name: string }>(
    "workers_scripts:read",
    (account) => `/accounts/${account}/workflows?per_page=100`,
    ({ name }, account) => ({
      label: name,
      detail: "workflow",
      path: `/${account}/workflows/${encodeURIComponent(name)}`,
    }),
  ),
  listed<{ queue_id: string; queue_name: string }>(
    "queues:read",
    (account) => `/accounts/${account}/queues?per_page=100`,
    (queue, account) => ({
      label: queue.queue_name,
      detail: "queue",
      path: `/${account}/queues/${queue.queue_id}`,
    }),
  ),
  listed<{ id: string; title: string }>(
    "workers_kv:read",
    (account) => `/accounts/${account}/storage/kv/namespaces?per_page=100`,
    (namespace, account) => ({
      label: namespace.title,
      detail: "key-value",
      path: `/${account}/kv/${namespace.id}`,
    }),
  ),
  listed<{ namespace_name: string }>(
    "workers_scripts:read",
    (account) => `/accounts/${account}/edge/dispatch/namespaces`,
    ({ namespace_name: name }, account) => ({
      label: name,
      detail: "dispatch",
      path: `/${account}/dispatch/${encodeURIComponent(name)}`,
    }),
  ),
  listed<{ name: string }>(
    "d1:read",
    (account) => `/accounts/${account}/d1/database?per_page=1000`,
    ({ name }, account) => ({ label: name, detail: "database", path: `/${account}/d1/${name}` }),
  ),
  listed<{ id: string; name: string }>(
    "workers_scripts:read",
    (account) => `/accounts/${account}/workers/durable_objects/namespaces?per_page=1000`,
    ({ id, name }, account) => ({ label: name, detail: "objects", path: `/${account}/objects/${id}` }),
  ),
];

/** The resource of an id of 32 hexadecimal digits. */
export async function byId(text: string, account: string): Promise<Hit[]> {
  const id = text.trim().toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(id)) return [];
  const attempts: Promise<Hit>[] = [
    get<{ name: string }>(`/zones/${id}`).then(({ result }) => ({
      label: result.name,
      detail: "zone",
      path: `/${account}/zones/${result.name}`,
    })),
    get<{ queue_name: string }>(`/accounts/${account}/queues/${id}`).then(({ result }) => ({
      label: result.queue_name,
      detail: "queue",
      path: `/${account}/queues/${id}`,
    })),
    get<{ title: string }>(`/accounts/${account}/storage/kv/namespaces/${id}`).then(({ result }) => ({
      label: result.title,
      detail: "key-value",
      path: `/${account}/kv/${id}`,
    })),
    get<{ name: string }>(`/user/tokens/${id}`).then(({ result }) => ({
      label: result.name,
      detail: "token",
      path: `/${account}/tokens?token=${id}`,
    })),
  ];
  const settled = await Promise.allSettled(attempts);
  return settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
}
