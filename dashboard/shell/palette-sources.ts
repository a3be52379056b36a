import { get } from "../core/client.ts";
import { fits, rank } from "../core/rank.ts";
import type { Customer } from "../screens/dispatch/namespace.ts";
import type { Image } from "../screens/images/image.ts";
import type { DnsRecord } from "../screens/zone/dns/record.ts";

/** A resource that the palette has found. */
export interface Hit {
  label: string;
  detail: string;
  path: string;
}

interface Source {
  needs?: string;
  /** At most eight hits for a text; for an empty text, suggestions. `zone` is the zone on screen. */
  find(text: string, account: string, zone: string | undefined): Promise<Hit[]>;
}

const hitsMax = 8;
/** Lists within others are read for this many of the outer ones. */
const outerMax = 5;
const innerMax = 1000;
const wordMin = 3;

let palettes = 0;

/** A palette opens: lists are read again, because something new may be in them. */
export const readAgain = (): number => ++palettes;

/** Hits in lists that the server cannot search. They are read once for each palette. */
function listed<T>(
  needs: string,
  read: (account: string) => Promise<readonly T[]>,
  hit: (item: T, account: string) => Hit,
): Source {
  let kept: { account: string; palette: number; list: Promise<readonly T[]> } | undefined;
  return {
    needs,
    async find(text, account) {
      if (text === "") return [];
      if (kept?.account !== account || kept.palette !== palettes)
        kept = { account, palette: palettes, list: read(account) };
      return (await kept.list)
        .map((item) => hit(item, account))
        .map((each) => ({ each, far: rank(text, each.label) ?? fits.letters }))
        .filter(({ far }) => far < fits.letters)
        .toSorted((a, b) => a.far - b.far)
        .slice(0, hitsMax)
        .map(({ each }) => each);
    },
  };
}

/** The list at a path below that of the account. */
const at =
  <T>(path: string) =>
  async (account: string): Promise<T[]> =>
    (await get<T[]>(`/accounts/${account}${path}`)).result;

/** The lists within the first things of a list. */
const within =
  <Outer, Inner, T>(
    outer: (account: string) => Promise<Outer[]>,
    inner: (of: Outer) => (account: string) => Promise<Inner[]>,
    join: (of: Outer, item: Inner) => T,
  ) =>
  async (account: string): Promise<T[]> => {
    const lists = (await outer(account)).slice(0, outerMax).map(async (of) => {
      const items = await inner(of)(account).catch(() => []);
      return items.map((item) => join(of, item));
    });
    return (await Promise.all(lists)).flat();
  };

const segment = encodeURIComponent;
const namespaces = at<{ namespace_name: string }>("/edge/dispatch/namespaces");
const workflows = at<{ name: string }>("/workflows?per_page=100");

/** The records of a zone that have a text in their name, value or comment. */
async function recordsOf(zone: { id: string; name: string }, text: string, account: string): Promise<Hit[]> {
  const query = new URLSearchParams({ search: text, per_page: String(hitsMax) });
  const { result } = await get<DnsRecord[]>(`/zones/${zone.id}/dns_records?${query}`);
  return result.map(({ id, name, type }) => ({
    label: name,
    detail: `${type} record`,
    path: `/${account}/zones/${zone.name}/dns?record=${id}`,
  }));
}

const zonesOf = async (query: Record<string, string>): Promise<{ id: string; name: string }[]> =>
  (await get<{ id: string; name: string }[]>(`/zones?${new URLSearchParams(query)}`)).result;

/** The customers that have a text in their name. */
async function customersOf(text: string, account: string): Promise<Hit[]> {
  const query = new URLSearchParams({ name: text, per_page: String(hitsMax) });
  const hits = within(
    namespaces,
    ({ namespace_name: of }) => at<Customer>(`/edge/dispatch/namespaces/${segment(of)}/scripts?${query}`),
    ({ namespace_name: of }, { script: { id } }): Hit => ({
      label: id,
      detail: `customer of ${of}`,
      path: `/${account}/dispatch/${segment(of)}/${segment(id)}`,
    }),
  );
  return (await hits(account)).slice(0, hitsMax);
}

/** The lists that the palette searches for names. */
export const sources: readonly Source[] = [
  {
    async find(text, account) {
      const zones = await zonesOf({
        "account.id": account,
        per_page: String(hitsMax),
        ...(text !== "" && { name: `contains:${text}` }),
      });
      return zones.map(({ name }) => ({
        label: name,
        detail: "zone",
        path: `/${account}/zones/${name}/dns`,
      }));
    },
  },
  {
    needs: "dns_records:read",
    async find(text, account, zone) {
      if (text.length < wordMin) return [];
      const common = { "account.id": account };
      const lists = await Promise.all([
        zone === undefined ? [] : zonesOf({ ...common, name: zone }),
        zonesOf({ ...common, per_page: String(outerMax), order: "name" }),
      ]);
      const zones = new Map(lists.flat().map((each) => [each.id, each]));
      const found = await Promise.all(
        [...zones.values()].map(async (each) => recordsOf(each, text, account)),
      );
      return found.flat().slice(0, hitsMax);
    },
  },
  {
    needs: "workers_scripts:read",
    find: async (text, account) => (text.length < wordMin ? [] : customersOf(text, account)),
  },
  listed(
    "workers_scripts:read",
    within(
      workflows,
      ({ name }) => at<{ id: string }>(`/workflows/${segment(name)}/instances?per_page=100`),
      (of, { id }) => ({ of: of.name, id }),
    ),
    ({ of, id }, account) => ({
      label: id,
      detail: `instance of ${of}`,
      path: `/${account}/workflows/${segment(of)}/${segment(id)}`,
    }),
  ),
  listed<Image>(
    "images:read",
    async (account) =>
      (await get<{ images: Image[] }>(`/accounts/${account}/images/v1?per_page=${innerMax}`)).result.images,
    (image, account) => ({
      label: image.filename || image.id,
      detail: image.filename && image.filename !== image.id ? `picture ${image.id}` : "picture",
      path: `/${account}/images?image=${segment(image.id)}`,
    }),
  ),
  listed<{ id: string }>("workers_scripts:read", at("/workers/scripts"), ({ id }, account) => ({
    label: id,
    detail: "script",
    path: `/${account}/scripts/${segment(id)}`,
  })),
  listed<{ name: string }>("workers_scripts:read", workflows, ({ name }, account) => ({
    label: name,
    detail: "workflow",
    path: `/${account}/workflows/${segment(name)}`,
  })),
  listed<{ queue_id: string; queue_name: string }>(
    "queues:read",
    at("/queues?per_page=100"),
    (queue, account) => ({
      label: queue.queue_name,
      detail: "queue",
      path: `/${account}/queues/${queue.queue_id}`,
    }),
  ),
  listed<{ id: string; title: string }>(
    "workers_kv:read",
    at("/storage/kv/namespaces?per_page=100"),
    (namespace, account) => ({
      label: namespace.title,
      detail: "key-value",
      path: `/${account}/kv/${namespace.id}`,
    }),
  ),
  listed<{ namespace_name: string }>(
    "workers_scripts:read",
    namespaces,
    ({ namespace_name: name }, account) => ({
      label: name,
      detail: "dispatch",
      path: `/${account}/dispatch/${segment(name)}`,
    }),
  ),
  listed<{ name: string }>("d1:read", at("/d1/database?per_page=1000"), ({ name }, account) => ({
    label: name,
    detail: "database",
    path: `/${account}/d1/${name}`,
  })),
  listed<{ id: string; name: string }>(
    "workers_scripts:read",
    at("/workers/durable_objects/namespaces?per_page=1000"),
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
