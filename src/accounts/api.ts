import { z } from "zod";
import { ApiError, apiErrors } from "../api/errors.ts";
import { listOperation, operation, type Call, type Operation } from "../api/operation.ts";
import { pageQuery, paginate } from "../api/pagination.ts";
import { isoTime } from "../util/ids.ts";
import type { Account, Membership } from "./accounts.ts";

const TimeSchema = z.string().meta({ format: "date-time" });

const AccountSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.enum(["standard", "enterprise"]),
    created_on: TimeSchema,
    settings: z.object({ enforce_twofactor: z.boolean(), abuse_contact_email: z.string().nullable() }),
  })
  .meta({ id: "Account" });

const accountResource = (account: Account): z.input<typeof AccountSchema> => ({
  id: account.id,
  name: account.name,
  type: account.type,
  created_on: isoTime(account.createdOn),
  settings: { enforce_twofactor: account.enforceTwofactor, abuse_contact_email: account.abuseContactEmail },
});

const AccountNameSchema = z.string().trim().min(1).max(100);

const listAccounts = listOperation({
  id: "account_list",
  method: "GET",
  path: "/accounts",
  summary: "List the accounts that the caller belongs to",
  access: { scope: "caller" },
  query: pageQuery({ default: 20, max: 50 }).extend({
    name: z.string().max(100).optional(),
    direction: z.enum(["asc", "desc"]).default("asc"),
  }),
  result: AccountSchema,
  async handle({ query, actor, services }) {
    const found = services.accounts
      .list()
      .filter(
        (account) => actor.belongsTo(account.id) && (query.name === undefined || account.name === query.name),
      );
    if (query.direction === "desc") found.reverse();
    const page = paginate(found, query);
    return { ...page, items: page.items.map(accountResource) };
  },
});

const createAccount = operation({
  id: "account_create",
  method: "POST",
  path: "/accounts",
  summary: "Create an account; the caller's user becomes its first member",
  access: { scope: "user", permission: "memberships:edit" },
  body: z.strictObject({
    name: AccountNameSchema,
    type: z.enum(["standard", "enterprise"]).default("standard"),
  }),
  result: AccountSchema,
  handle: async ({ body, actor, services }) =>
    accountResource(await services.accounts.create({ ...body, ownerUserId: actor.userId! })),
});

const getAccount = operation({
  id: "account_get",
  method: "GET",
  path: "/accounts/{account_id}",
  summary: "Get an account",
  access: { scope: "account", permission: "account_settings:read" },
  result: AccountSchema,
  handle: async ({ account }) => accountResource(account),
});

const updateAccount = operation({
  id: "account_update",
  method: "PUT",
  path: "/accounts/{account_id}",
  summary: "Change an account's name and settings",
  access: { scope: "account", permission: "account_settings:edit" },
  body: z.strictObject({
    id: z.string().optional(),
    name: AccountNameSchema.optional(),
    type: z.enum(["standard", "enterprise"]).optional(),
    settings: z
      .strictObject({
        enforce_twofactor: z.boolean().optional(),
        abuse_contact_email: z.email().nullable().optional(),
      })
      .optional(),
  }),
  result: AccountSchema,
  async handle({ body, account, services }) {
    for (const field of ["id", "type"] as const) {
      if (body[field] !== undefined && body[field] !== account[field]) {
        throw apiErrors.invalid(
          `Expected "${account[field]}" for ${field}, which cannot be changed`,
          `/body/${field}`,
        );
      }
    }
    const updated = await services.accounts.update(account, {
      ...(body.name === undefined ? {} : { name: body.name }),
      ...(body.settings?.enforce_twofactor === undefined
        ? {}
        : { enforceTwofactor: body.settings.enforce_twofactor }),
      ...(body.settings?.abuse_contact_email === undefined
        ? {}
        : { abuseContactEmail: body.settings.abuse_contact_email }),
    });
    return accountResource(updated);
  },
});

const deleteAccount = operation({
  id: "account_delete",
  method: "DELETE",
  path: "/accounts/{account_id}",
  summary: "Delete an account that has no zones",
  access: { scope: "account", permission: "account_settings:edit" },
  result: z.object({ id: z.string() }),
  async handle({ account, services }) {
    const zones = services.zones.list().filter((zone) => zone.accountId === account.id).length;
    if (zones > 0) throw new ApiError(409, 1032, `The account still has ${zones} zones. Delete them first`);
    await services.accounts.delete(account.id);
    return { id: account.id };
  },
});

const MembershipSchema = z
  .object({
    id: z.string(),
    status: z.enum(["accepted", "pending", "rejected"]),
    account: AccountSchema,
    roles: z.array(z.string()),
    permissions: z.record(z.string(), z.object({ read: z.boolean(), write: z.boolean() })),
    api_access_enabled: z.boolean().nullable(),
  })
  .meta({ id: "Membership" });

const everything = { read: true, write: true };
const membershipResource = (membership: Membership, account: Account): z.input<typeof MembershipSchema> => ({
  id: membership.id,
  status: membership.status,
  account: accountResource(account),
  roles: membership.roles,
  permissions: {
    zones: everything,
    dns_records: everything,
    zone_settings: everything,
    organization: everything,
  },
  api_access_enabled: null,
});

const listMemberships = listOperation({
  id: "membership_list",
  method: "GET",
  path: "/memberships",
  summary: "List the accounts that the caller's user is a member of",
  access: { scope: "user", permission: "memberships:read" },
  query: pageQuery({ default: 20, max: 50 }).extend({
    status: z.enum(["accepted", "pending", "rejected"]).optional(),
    name: z.string().max(100).optional(),
    "account.name": z.string().max(100).optional(),
    order: z.enum(["id", "account.name", "status"]).default("id"),
    direction: z.enum(["asc", "desc"]).default("asc"),
  }),
  result: MembershipSchema,
  async handle({ query, actor, services }) {
    const name = query["account.name"] ?? query.name;
    const found = services.accounts
      .membershipsOf(actor.userId!)
      .map((membership) => ({ membership, account: services.accounts.find(membership.accountId)! }))
      .filter(
        ({ membership, account }) =>
          (query.status === undefined || membership.status === query.status) &&
          (name === undefined || account.name === name),
      );
    const key = (entry: (typeof found)[number]): string =>
      query.order === "id"
        ? entry.membership.id
        : query.order === "status"
          ? entry.membership.status
          : entry.account.name;
    found.sort((a, b) => (key(a) < key(b) ? -1 : 1) * (query.direction === "asc" ? 1 : -1));
    const page = paginate(found, query);
    return {
      ...page,
      items: page.items.map(({ membership, account }) => membershipResource(membership, account)),
    };
  },
});

function ownMembership({ params, actor, services }: Call<never, never>): {
  membership: Membership;
  account: Account;
} {
  const membership = services.accounts.findMembership(params["membership_id"]!);
  const account = membership && services.accounts.find(membership.accountId);
  if (membership === undefined || account === undefined || membership.userId !== actor.userId) {
    throw new ApiError(404, 1003, `No membership of the caller has the id ${params["membership_id"]}`);
  }
  return { membership, account };
}

const getMembership = operation({
  id: "membership_get",
  method: "GET",
  path: "/memberships/{membership_id}",
  summary: "Get a membership of the caller's user",
  access: { scope: "user", permission: "memberships:read" },
  result: MembershipSchema,
  async handle(call) {
    const { membership, account } = ownMembership(call as unknown as Call<never, never>);
    return membershipResource(membership, account);
  },
});

const deleteMembership = operation({
  id: "membership_delete",
  method: "DELETE",
  path: "/memberships/{membership_id}",
  summary: "Leave an account",
  access: { scope: "user", permission: "memberships:edit" },
  result: z.object({ id: z.string() }),
  async handle(call) {
    const { membership } = ownMembership(call as unknown as Call<never, never>);
    await call.services.accounts.deleteMembership(membership.id);
    return { id: membership.id };
  },
});

export const accountOperations: readonly Operation[] = [
  listAccounts,
  createAccount,
  getAccount,
  updateAccount,
  deleteAccount,
  listMemberships,
  getMembership,
  deleteMembership,
];
