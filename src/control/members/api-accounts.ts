import { z } from "zod";
import { ApiError, apiErrors } from "../api/errors.ts";
import { operationsFor } from "../api/operation.ts";
import { pageQuery, paginate } from "../api/pagination.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Account, Accounts } from "../accounts/accounts.ts";
import { memberErrors } from "./errors.ts";
import type { Zones } from "../zones/zones.ts";

/** The services that these operations use. */
interface Services {
  accounts: Accounts;
  zones: Zones;
}

const { listOperation, operation } = operationsFor<Services>();

const TimeSchema = z.string().meta({ format: "date-time" });

export const AccountSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.enum(["standard", "enterprise"]),
    created_on: TimeSchema,
    settings: z.object({ enforce_twofactor: z.boolean(), abuse_contact_email: z.string().nullable() }),
  })
  .meta({ id: "Account" });

export const accountResource = (account: Account): z.input<typeof AccountSchema> => ({
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
  summary: "List the caller's accounts",
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
  async handle({ body, actor, services }) {
    if (services.accounts.findUser(actor.userId!)?.invited === true) throw memberErrors.noAccounts();
    return accountResource(await services.accounts.create({ ...body, ownerUserId: actor.userId! }));
  },
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

export const accountOperations = [listAccounts, createAccount, getAccount, updateAccount, deleteAccount];
