import { z } from "zod";
import { operationsFor } from "../api/operation.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { User, Accounts } from "../accounts/accounts.ts";
import type { Zones } from "../zones/zones.ts";

/** The services that these operations use. */
interface Services {
  accounts: Accounts;
  zones: Zones;
}

const { operation } = operationsFor<Services>();

const DetailSchema = z.string().max(60).nullable();
const UserSchema = z
  .object({
    id: z.string(),
    email: z.string(),
    first_name: DetailSchema,
    last_name: DetailSchema,
    telephone: DetailSchema,
    country: DetailSchema,
    zipcode: DetailSchema,
    two_factor_authentication_enabled: z.boolean(),
    two_factor_authentication_locked: z.boolean(),
    suspended: z.boolean(),
    has_pro_zones: z.boolean(),
    has_business_zones: z.boolean(),
    has_enterprise_zones: z.boolean(),
    organizations: z.array(z.object({ id: z.string(), name: z.string() })),
    betas: z.array(z.string()),
    created_on: z.string(),
    modified_on: z.string(),
  })
  .meta({ id: "User" });

const userResource = (
  user: User,
  plans: ReadonlySet<string>,
  organizations: { id: string; name: string }[],
): z.input<typeof UserSchema> => ({
  id: user.id,
  email: user.email,
  first_name: user.firstName,
  last_name: user.lastName,
  telephone: user.telephone,
  country: user.country,
  zipcode: user.zipcode,
  two_factor_authentication_enabled: false,
  two_factor_authentication_locked: false,
  suspended: false,
  has_pro_zones: plans.has("pro"),
  has_business_zones: plans.has("business"),
  has_enterprise_zones: plans.has("enterprise"),
  organizations,
  betas: [],
  created_on: isoTime(user.createdOn),
  modified_on: isoTime(user.modifiedOn),
});

function describeUser(userId: string, services: Services): z.input<typeof UserSchema> {
  const accountIds = new Set(services.accounts.membershipsOf(userId).map((m) => m.accountId));
  const plans = new Set(
    services.zones.list().flatMap((zone) => (accountIds.has(zone.accountId) ? [zone.plan] : [])),
  );
  const organizations = services.accounts.list().filter((account) => accountIds.has(account.id));
  return userResource(
    services.accounts.findUser(userId)!,
    plans,
    organizations.map(({ id, name }) => ({ id, name })),
  );
}

const getUser = operation({
  id: "user_get",
  method: "GET",
  path: "/user",
  summary: "Get the caller's user",
  access: { scope: "user", permission: "user_details:read" },
  result: UserSchema,
  handle: async ({ actor, services }) => describeUser(actor.userId!, services),
});

const editUser = operation({
  id: "user_edit",
  method: "PATCH",
  path: "/user",
  summary: "Change the details of the caller's user",
  access: { scope: "user", permission: "user_details:edit" },
  body: z.strictObject({
    first_name: DetailSchema.optional(),
    last_name: DetailSchema.optional(),
    telephone: DetailSchema.optional(),
    country: DetailSchema.optional(),
    zipcode: DetailSchema.optional(),
  }),
  result: UserSchema,
  async handle({ body, actor, services }) {
    const user = services.accounts.findUser(actor.userId!)!;
    const { first_name, last_name, telephone, country, zipcode } = body;
    await services.accounts.updateUser(user, {
      ...(first_name === undefined ? {} : { firstName: first_name }),
      ...(last_name === undefined ? {} : { lastName: last_name }),
      ...(telephone === undefined ? {} : { telephone }),
      ...(country === undefined ? {} : { country }),
      ...(zipcode === undefined ? {} : { zipcode }),
    });
    return describeUser(user.id, services);
  },
});

export const userOperations = [getUser, editUser];
