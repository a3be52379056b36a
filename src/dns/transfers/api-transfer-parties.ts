import { isIP } from "node:net";
import { z } from "zod";
import type { Account } from "../../control/accounts/accounts.ts";
import { apiErrors } from "../../control/api/errors.ts";
import { operationsFor, type Operation } from "../../control/api/operation.ts";
import { parseHost } from "../records/types/host.ts";
import { newId } from "../../platform/util/ids.ts";
import { show } from "../../platform/util/json.ts";
import { transferErrors } from "./errors.ts";
import type { OutgoingTransfers } from "./outgoing.ts";
import { transferAlgorithms, type TransferAlgorithm } from "./tsig.ts";
import { clock } from "../../platform/timers/clock.ts";
import { sensitive } from "../../control/api/sensitive.ts";

/** The services that these operations use. */
interface Services {
  transfers: OutgoingTransfers;
}

const { operation } = operationsFor<Services>();

const NameSchema = z.string().min(1).max(255);
const read = { scope: "account", permission: "account_settings:read" } as const;
const edit = { scope: "account", permission: "account_settings:edit" } as const;

interface OfAccount {
  id: string;
  accountId: string;
  name: string;
  createdOn: number;
}
interface Kind<T extends OfAccount, R extends z.ZodObject, B extends z.ZodObject> {
  /** The name in paths and operation ids. */
  path: string;
  noun: string;
  plural: string;
  result: R;
  body: B;
  list: (transfers: OutgoingTransfers, accountId: string) => T[];
  /** Validates a body and returns the item's fields. */
  /** Its resource has a secret. */
  hasSecret?: boolean;
  fieldsOf: (body: z.output<B>) => Omit<T, keyof OfAccount> & { name: string };
  resource: (item: T) => z.input<R>;
  save: (transfers: OutgoingTransfers, item: T) => Promise<T>;
  delete: (transfers: OutgoingTransfers, item: T) => Promise<void>;
}

/** The operations on one kind of an account's resources: ACLs, TSIG keys or peers. */
function operationsOf<T extends OfAccount, R extends z.ZodObject, B extends z.ZodObject>(
  kind: Kind<T, R, B>,
): Operation<Services>[] {
  const path = `/accounts/{account_id}/secondary_dns/${kind.path}`;
  const parameter = `${kind.path.slice(0, -1)}_id`;
  const one = `${path}/{${parameter}}`;
  const id = (action: string): string => `zone_transfer_${kind.path.slice(0, -1)}_${action}`;
  const find = (services: Services, account: Account, params: Record<string, string>): T => {
    const found = kind.list(services.transfers, account.id).find((each) => each.id === params[parameter]);
    if (found === undefined) throw transferErrors.notFound(kind.noun, params[parameter]!);
    return found;
  };
  const fromBody = (body: unknown, own: Omit<OfAccount, "name">): T =>
    ({ ...kind.fieldsOf(body as z.output<B>), ...own }) as unknown as T;
  return [
    operation({
      id: id("list"),
      method: "GET",
      path,
      summary: `List ${kind.plural}`,
      access: read,
      answersSecret: kind.hasSecret === true,
      result: z.array(kind.result),
      handle: async ({ account, services }) =>
        kind.list(services.transfers, account.id).map(kind.resource) as never,
    }),
    operation({
      id: id("create"),
      method: "POST",
      path,
      summary: `Create a ${kind.noun}`,
      access: edit,
      body: kind.body,
      result: kind.result,
      async handle({ account, body, services }) {
        const own = { id: newId(), accountId: account.id, createdOn: clock.now() };
        return kind.resource(await kind.save(services.transfers, fromBody(body, own)));
      },
    }),
    operation({
      id: id("get"),
      method: "GET",
      path: one,
      summary: `Get a ${kind.noun}`,
      access: read,
      answersSecret: kind.hasSecret === true,
      result: kind.result,
      handle: async ({ account, params, services }) => kind.resource(find(services, account, params)),
    }),
    operation({
      id: id("update"),
      method: "PUT",
      path: one,
      summary: `Replace a ${kind.noun}`,
      access: edit,
      body: kind.body,
      result: kind.result,
      async handle({ account, params, body, services }) {
        const { id, accountId, createdOn } = find(services, account, params);
        return kind.resource(
          await kind.save(services.transfers, fromBody(body, { id, accountId, createdOn })),
        );
      },
    }),
    operation({
      id: id("delete"),
      method: "DELETE",
      path: one,
      summary: `Delete a ${kind.noun}`,
      access: edit,
      result: z.object({ id: z.string() }),
      async handle({ account, params, services }) {
        const item = find(services, account, params);
        await kind.delete(services.transfers, item);
        return { id: item.id };
      },
    }),
  ];
}

const networks = operationsOf({
  path: "acls",
  noun: "network of peers",
  plural: "the networks of peers",
  result: z
    .object({ id: z.string(), name: z.string(), ip_range: z.string() })
    .meta({ id: "ZoneTransferAcl", description: "A network from which peers may transfer zones" }),
  body: z.strictObject({ name: NameSchema, ip_range: z.string() }),
  list: (transfers, accountId) => transfers.networks(accountId),
  fieldsOf: ({ name, ip_range }) => ({ name, network: networkOf(ip_range) }),
  resource: ({ id, name, network }) => ({ id, name, ip_range: network }),
  save: (transfers, network) => transfers.saveNetwork(network),
  delete: (transfers, network) => transfers.deleteNetwork(network),
});

const secrets = operationsOf({
  path: "tsigs",
  hasSecret: true,
  noun: "TSIG key",
  plural: "the TSIG keys",
  result: z
    .object({ id: z.string(), name: z.string(), algo: z.string(), secret: sensitive(z.string()) })
    .meta({ id: "ZoneTransferTsig", description: "A key with which peers sign their messages" }),
  body: z.strictObject({
    name: NameSchema,
    algo: z.enum(Object.keys(transferAlgorithms) as [TransferAlgorithm]),
    secret: sensitive(z.base64().min(4)),
  }),
  list: (transfers, accountId) => transfers.secrets(accountId),
  fieldsOf({ name, algo, secret }) {
    if (parseHost(name.replace(/\.$/, ""), { underscore: true }) === undefined)
      throw apiErrors.invalid(`Expected a domain name but received ${show(name)}`, "/body/name");
    return { name, algorithm: algo, secret };
  },
  resource: ({ id, name, algorithm, secret }) => ({ id, name, algo: algorithm, secret }),
  save: (transfers, secret) => transfers.saveSecret(secret),
  delete: (transfers, secret) => transfers.deleteSecret(secret),
});

const peers = operationsOf({
  path: "peers",
  noun: "peer",
  plural: "the peers that transfer zones",
  result: z
    .object({
      id: z.string(),
      name: z.string(),
      ip: z.string().nullable(),
      port: z.int(),
      ixfr_enable: z.boolean(),
      tsig_id: z.string().nullable(),
    })
    .meta({ id: "ZoneTransferPeer", description: "A secondary name server" }),
  body: z.strictObject({
    name: NameSchema,
    ip: z.string().nullable().optional(),
    port: z.int().min(1).max(65_535).optional(),
    ixfr_enable: z.boolean().optional(),
    tsig_id: z.string().nullable().optional(),
  }),
  list: (transfers, accountId) => transfers.peers(accountId),
  fieldsOf({ name, ip, port, ixfr_enable, tsig_id }) {
    if (typeof ip === "string" && isIP(ip) === 0)
      throw apiErrors.invalid(`Expected an IP address but received ${show(ip)}`, "/body/ip");
    return {
      name,
      address: ip ?? null,
      port: port ?? 53,
      isIncremental: ixfr_enable ?? false,
      keyId: tsig_id ?? null,
    };
  },
  resource: ({ id, name, address, port, isIncremental, keyId }) => ({
    id,
    name,
    ip: address,
    port,
    ixfr_enable: isIncremental,
    tsig_id: keyId,
  }),
  save: (transfers, peer) => transfers.savePeer(peer),
  delete: (transfers, peer) => transfers.deletePeer(peer),
});

/** Normalizes a network to ADDRESS/BITS. A single address becomes a network of one. */
function networkOf(text: string): string {
  const [address = "", bits, ...more] = text.split("/");
  const bitsMax = isIP(address) === 6 ? 128 : 32;
  const isLength = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax);
  if (isIP(address) === 0 || !isLength || more.length > 0)
    throw apiErrors.invalid(`Expected an address or a network but received ${show(text)}`, "/body/ip_range");
  return `${address}/${bits ?? bitsMax}`;
}

export const transferPartyOperations = [...networks, ...secrets, ...peers];
