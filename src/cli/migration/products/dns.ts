import { z } from "zod";
import { plans } from "../../../control/zones/plans.ts";
import { parseRecord, type RecordFields, type RecordInput } from "../../../dns/records/record.ts";
import { pagesOf } from "../account/lists.ts";
import { path } from "../account/path.ts";
import { product } from "../product.ts";

const schema = z.object({
  type: z.string().max(16),
  name: z.string().max(255),
  content: z.string().max(65_535),
  data: z.record(z.string().max(32), z.unknown()).nullable(),
  priority: z.number().nullable(),
  ttl: z.number(),
  proxied: z.boolean(),
  settings: z.object({
    ipv4_only: z.boolean().optional(),
    ipv6_only: z.boolean().optional(),
    flatten_cname: z.boolean().optional(),
  }),
  comment: z.string().max(2000).nullable(),
  tags: z.array(z.string().max(300)).max(100),
});
export type DescribedRecord = z.output<typeof schema>;

/** A name has one CNAME, so another target is a change of it; any other content is another record. */
const keyOf = ({ type, name, content, priority }: DescribedRecord): string =>
  type === "CNAME"
    ? `${type} ${name}`
    : [type, name, ...(priority === null ? [] : [priority]), content].join(" ");

/** The records of a zone, in the form that the name server parses, so that two spellings of one record are equal. */
export const dnsRecord = product({
  name: "dns_record",
  group: "dns",
  scope: "zone",
  schema,
  key: keyOf,
  async *read({ account, zone, leaveOut }) {
    const hosts = await account.domainHosts();
    const refused: string[] = [];
    const managed: string[] = [];
    const perhapsOfDomains: string[] = [];
    for (const raw of await pagesOf(account.client, path`/zones/${zone.id}/dns_records`, 1000)) {
      const title = `${String(raw["type"])} ${String(raw["name"])}`;
      const isReadOnly = (raw["meta"] as { read_only?: unknown } | null)?.read_only === true;
      if (isOriginless(raw) && hosts?.has(String(raw["name"])) !== false) {
        if (hosts === undefined) perhapsOfDomains.push(title);
      } else if (isReadOnly) managed.push(title);
      else {
        const record = described(raw, zone.name);
        if (record === undefined) refused.push(title);
        else yield { id: String(raw["id"]), value: record };
      }
    }
    leaveOut(perhapsOfDomains, "may be of domains of scripts, which the token cannot read");
    leaveOut(managed, "another product of the account makes them");
    leaveOut(refused, "an installation refuses their type or content");
  },
  async createAll({ account, zone }, values) {
    const all = path`/zones/${zone.id}/dns_records/batch`;
    await account.client.send("POST", all, { posts: values.map(bodyOf) });
  },
  async write({ account, zone }, value, before) {
    const body = bodyOf(value);
    const all = path`/zones/${zone.id}/dns_records`;
    if (before === undefined) await account.client.send("POST", all, body);
    else await account.client.send("PUT", `${all}/${before.id ?? ""}`, body);
  },
  async remove({ account, zone }, { id }) {
    await account.client.send("DELETE", path`/zones/${zone.id}/dns_records/${id ?? ""}`);
  },
});

const bodyOf = ({ content, data, priority, ...others }: DescribedRecord): Record<string, unknown> => ({
  ...others,
  ...(data === null ? { content } : { data }),
  ...(priority === null ? {} : { priority }),
});

/** A record as a script's domain makes it for itself. */
const isOriginless = (raw: Record<string, unknown>): boolean =>
  raw["type"] === "AAAA" && raw["content"] === "100::" && raw["proxied"] === true;

function described(raw: Record<string, unknown>, zoneName: string): RecordFields | undefined {
  const { type, name, content, data, priority, ttl, proxied, settings, comment, tags } = raw;
  const given = { type, name, content, data, priority, ttl, proxied, settings, comment, tags };
  const present = Object.entries(given).filter(([, value]) => value !== null && value !== undefined);
  try {
    return parseRecord(Object.fromEntries(present) as unknown as RecordInput, zoneName, plans.enterprise);
  } catch {
    return undefined;
  }
}

const soaFields = ["expire", "min_ttl", "refresh", "retry", "ttl"] as const;
const settingsSchema = z.object({
  flatten_all_cnames: z.boolean().default(false),
  multi_provider: z.boolean().default(false),
  ns_ttl: z.number(),
  soa: z.object(
    Object.fromEntries(soaFields.map((name) => [name, z.number()])) as Record<
      (typeof soaFields)[number],
      z.ZodNumber
    >,
  ),
});

/** The settings of a zone's answers. The names in the SOA record belong to the provider. */
export const dnsSettings = product({
  name: "dns_settings",
  group: "dns",
  scope: "zone",
  schema: settingsSchema,
  key: () => "settings",
  async *read({ account, zone }) {
    const { result } = await account.client.get(path`/zones/${zone.id}/dns_settings`);
    yield { id: zone.id, value: settingsSchema.parse(result) };
  },
  async write({ account, zone }, value) {
    await account.client.send("PATCH", path`/zones/${zone.id}/dns_settings`, value);
  },
});

/** Whether a zone is signed. Its key stays where it is, so the parent needs a DS record for the new one. */
export const dnssec = product({
  name: "dnssec",
  group: "dns",
  scope: "zone",
  schema: z.object({ signed: z.boolean(), multi_signer: z.boolean() }),
  key: () => "dnssec",
  async *read({ account, zone, leaveOut }) {
    const { result } = await account.client.get(path`/zones/${zone.id}/dnssec`);
    const { status, dnssec_multi_signer } = (result ?? {}) as Record<string, unknown>;
    const signed = status === "active" || status === "pending";
    if (signed)
      leaveOut([zone.name], "keys cannot be read: the new account signs with its own", "dnssec_key");
    yield { id: zone.id, value: { signed, multi_signer: dnssec_multi_signer === true } };
  },
  async write({ account, zone }, { signed, multi_signer }) {
    await account.client.send("PATCH", path`/zones/${zone.id}/dnssec`, {
      status: signed ? "active" : "disabled",
      dnssec_multi_signer: multi_signer,
    });
  },
});
