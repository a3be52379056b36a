import { objectsIn } from "./account/lists.ts";
import { path } from "./account/path.ts";
import type { MigratedAccount } from "./account/account.ts";
import { CallRefused, printable } from "./failure.ts";
import type { LeftOut } from "./product.ts";

const why = "an installation does not have this product";
const namesMax = 100;

/** Products that an import only reports, because installations lack them. `list` is the field of the items. */
const inZone: readonly (readonly [product: string, path: string, list?: string])[] = [
  ["page_rules", "pagerules"],
  ["firewall_access_rules", "firewall/access_rules/rules"],
  ["user_agent_rules", "firewall/ua_rules"],
  ["zone_lockdowns", "firewall/lockdowns"],
  ["load_balancers", "load_balancers"],
  ["health_checks", "healthchecks"],
  ["waiting_rooms", "waiting_rooms"],
  ["spectrum_applications", "spectrum/apps"],
  ["custom_hostnames", "custom_hostnames"],
  ["email_routing_rules", "email/routing/rules"],
  ["logpush_jobs", "logpush/jobs"],
  ["web3_hostnames", "web3/hostnames"],
  ["page_shield_policies", "page_shield/policies"],
  ["client_certificates", "client_certificates"],
];
const inAccount: typeof inZone = [
  ["lists", "rules/lists"],
  ["r2_buckets", "r2/buckets", "buckets"],
  ["pages_projects", "pages/projects"],
  ["hyperdrive_configs", "hyperdrive/configs"],
  ["vectorize_indexes", "vectorize/v2/indexes"],
  ["tunnels", "cfd_tunnel?is_deleted=false"],
  ["access_applications", "access/apps"],
  ["stream_videos", "stream"],
  ["turnstile_widgets", "challenges/widgets"],
  ["load_balancer_pools", "load_balancers/pools"],
  ["secrets_stores", "secrets_store/stores"],
  ["logpush_jobs", "logpush/jobs"],
  ["notification_policies", "alerting/v3/policies"],
];
/** Resources that an installation supports but an import cannot copy, with the reason. */
const secretInZone: readonly Secret[] = [
  [
    "custom_certificates",
    "custom_certificates",
    "private keys cannot be read: upload certificate and key again",
  ],
  [
    "certificate_packs",
    "ssl/certificate_packs?status=all",
    "certificates are issued again for the new account",
  ],
];
const secretInAccount: readonly Secret[] = [
  ["image_signing_keys", "images/v1/keys", "secrets: make new keys, and sign the URLs with these", "keys"],
  ["api_tokens", "tokens", "secrets: make new tokens"],
  ["members", "members", "people accept an invitation themselves"],
  ["tsig_keys", "secondary_dns/tsigs", "secrets: make the keys of zone transfers again"],
];
type Secret = readonly [product: string, path: string, why: string, list?: string | undefined];

/** The resources of an account that cannot be imported, by name and count. */
export async function readAbsentProducts(account: MigratedAccount): Promise<LeftOut[]> {
  const found: LeftOut[] = [];
  const closed = new Set<string>();
  const look = async (zone: string | undefined, [product, at, reason, list]: Secret): Promise<void> => {
    const items = await itemsAt(account, at, list);
    if (items === "closed") closed.add(product);
    else if (items.count > 0)
      found.push({ product, ...(zone === undefined ? {} : { zone }), ...items, why: reason });
  };
  const absent = ([product, from, list]: (typeof inZone)[number]): Secret => [product, from, why, list];
  const under = (base: string, [product, from, ...more]: Secret): Secret => [
    product,
    `${base}/${from}`,
    ...more,
  ];
  for (const { id, name } of account.zones)
    for (const each of [...inZone.map(absent), ...secretInZone])
      await look(name, under(path`/zones/${id}`, each));
  for (const each of [...inAccount.map(absent), ...secretInAccount])
    await look(undefined, under(path`/accounts/${account.accountId}`, each));
  if (closed.size > 0)
    found.push({
      product: "unknown",
      names: [...closed],
      count: closed.size,
      why: "the token lacks the permission to see whether the account uses these",
    });
  return found;
}

async function itemsAt(
  { client }: MigratedAccount,
  at: string,
  list: string | undefined,
): Promise<{ names: string[]; count: number } | "closed"> {
  try {
    // Answers about tokens and keys are not recorded on disk.
    const { result, result_info } = await client.getUnrecorded(at);
    const items = objectsIn(list === undefined ? result : (result as Record<string, unknown> | null)?.[list]);
    const total = result_info["total_count"];
    const isCount = typeof total === "number" && Number.isSafeInteger(total);
    const count = isCount ? Math.max(total, items.length) : items.length;
    return { names: items.slice(0, namesMax).map(nameOf), count };
  } catch (error) {
    if (!(error instanceof CallRefused)) throw error;
    if (error.status === 403) return "closed";
    if (error.isAbsence || error.status === 400) return { names: [], count: 0 };
    throw error;
  }
}

function nameOf(item: Record<string, unknown>): string {
  const { name, hostname, hosts, email, description, id } = item;
  const texts = [name, hostname, Array.isArray(hosts) ? hosts.join(", ") : "", email, description, id];
  return printable(texts.find((each): each is string => typeof each === "string" && each !== "") ?? "?");
}
