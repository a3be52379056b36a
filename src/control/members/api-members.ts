import { z } from "zod";
import { baseUrl } from "../api/base-url.ts";
import { apiErrors } from "../api/errors.ts";
import { operationsFor } from "../api/operation.ts";
import { pageQuery, paginate } from "../api/pagination.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { show } from "../../platform/util/json.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { memberErrors } from "./errors.ts";
import { isInvitation, type Member, type Members } from "./members.ts";
import { findRole, grantsOf, roles, rolesNamed, type Role } from "../accounts/roles.ts";
import { memberErrorCodes } from "./api-errors.ts";

/** The services that these operations use. */
interface Services {
  accounts: Accounts;
  members: Members;
}

const { listOperation, operation } = operationsFor<Services>(memberErrorCodes);

export const GrantsSchema = z.record(z.string(), z.object({ read: z.boolean(), write: z.boolean() }));

const RoleSchema = z
  .object({ id: z.string(), name: z.string(), description: z.string(), permissions: GrantsSchema })
  .meta({ id: "Role" });
const roleResource = ({ id, name, description, permissions }: Role): z.input<typeof RoleSchema> => ({
  id,
  name,
  description,
  permissions: grantsOf(permissions),
});

const statuses = ["accepted", "pending", "rejected"] as const;
const MemberSchema = z
  .object({
    id: z.string(),
    email: z.string(),
    status: z.enum(statuses),
    user: z.object({
      id: z.string().optional(),
      email: z.string(),
      first_name: z.string().nullable(),
      last_name: z.string().nullable(),
      two_factor_authentication_enabled: z.boolean(),
    }),
    roles: z.array(RoleSchema),
  })
  .meta({ id: "Member" });
const InvitedSchema = MemberSchema.extend({
  invitation: z.object({ url: z.string(), expires_on: z.string() }),
}).meta({ id: "InvitedMember" });

function memberResource(member: Member, accounts: Accounts): z.input<typeof MemberSchema> {
  // Before the user accepts, the response must not reveal whether the address has a user.
  const user = isInvitation(member) ? undefined : accounts.findUser(member.userId);
  const email = isInvitation(member) ? member.email : (user?.email ?? "");
  return {
    id: member.id,
    email,
    status: isInvitation(member) ? member.status : "accepted",
    user: {
      ...(user === undefined ? {} : { id: user.id }),
      email,
      first_name: user?.firstName ?? null,
      last_name: user?.lastName ?? null,
      two_factor_authentication_enabled: false,
    },
    roles: rolesNamed(member.roles).map(roleResource),
  };
}

const rolesMax = 20;
const RoleIdsSchema = z.array(z.string().max(32)).min(1).max(rolesMax);

/** Names of the roles with these ids. */
const namesOf = (ids: readonly string[]): string[] =>
  [...new Set(ids)].map((id, index) => {
    const role = findRole(id);
    if (role !== undefined) return role.name;
    throw apiErrors.invalid(
      `Expected the id of a role for roles.${index} but received ${show(id)}. See GET /accounts/{account_id}/roles`,
      `/body/roles/${index}`,
    );
  });

const read = { scope: "account", permission: "account_settings:read" } as const;
const edit = { scope: "account", permission: "account_settings:edit" } as const;
const base = "/accounts/{account_id}/members";

const orders = {
  "user.first_name": ({ user }: z.input<typeof MemberSchema>) => user.first_name ?? "",
  "user.last_name": ({ user }: z.input<typeof MemberSchema>) => user.last_name ?? "",
  "user.email": ({ email }: z.input<typeof MemberSchema>) => email,
  status: ({ status }: z.input<typeof MemberSchema>) => status as string,
};

export const memberOperations = [
  listOperation({
    id: "member_list",
    method: "GET",
    path: base,
    summary: "List the account's members and invitations",
    access: read,
    query: pageQuery({ default: 20, max: 50 }).extend({
      status: z.enum(statuses).optional(),
      order: z.enum(["user.first_name", "user.last_name", "user.email", "status"]).optional(),
      direction: z.enum(["asc", "desc"]).default("asc"),
    }),
    result: MemberSchema,
    async handle({ query, account, services }) {
      const found = services.members
        .list(account.id)
        .map((member) => memberResource(member, services.accounts))
        .filter(({ status }) => query.status === undefined || status === query.status);
      if (query.order !== undefined) {
        const key = orders[query.order];
        found.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
      }
      if (query.direction === "desc") found.reverse();
      return paginate(found, query);
    },
  }),
  operation({
    id: "member_create",
    method: "POST",
    path: base,
    summary: "Invite a person to the account. The invitation's URL is shown only once, and no email is sent",
    access: edit,
    body: z.strictObject({
      email: z.email().max(254),
      roles: RoleIdsSchema,
      status: z.enum(["accepted", "pending"]).optional(),
    }),
    result: InvitedSchema,
    async handle({ body, account, actor, services, incoming, messages }) {
      const input = { email: body.email, roles: namesOf(body.roles) };
      const { invitation, secret } = await services.members.invite(actor, account.id, input);
      const expires_on = isoTime(invitation.expiresOn);
      messages.push({
        code: 1061,
        message: `No email is sent. Send invitation.url to ${invitation.email}; a POST to it accepts the invitation, once, until ${expires_on}`,
      });
      if (body.status === "accepted")
        messages.push({ code: 1061, message: "The status is pending until the invitation is accepted" });
      const path = `/client/v4/user/invites/${invitation.id}/accept?secret=${secret}`;
      return {
        ...memberResource(invitation, services.accounts),
        invitation: { url: `${baseUrl(incoming, "http")}${path}`, expires_on },
      };
    },
  }),
  operation({
    id: "member_get",
    method: "GET",
    path: `${base}/{member_id}`,
    summary: "Get a member",
    access: read,
    result: MemberSchema,
    handle: async ({ account, params, services }) =>
      memberResource(services.members.get(account.id, params["member_id"]!), services.accounts),
  }),
  operation({
    id: "member_update",
    method: "PUT",
    path: `${base}/{member_id}`,
    summary: "Replace a member's roles",
    access: edit,
    // Clients send the whole member back when they edit it. Only the roles can change.
    body: z.strictObject({
      roles: z
        .array(z.object({ id: z.string().max(32) }))
        .min(1)
        .max(rolesMax),
      id: z.string().optional(),
      email: z.string().optional(),
      status: z.string().optional(),
      user: z.object({}).optional(),
    }),
    result: MemberSchema,
    async handle({ body, account, actor, params, services }) {
      const names = namesOf(body.roles.map(({ id }) => id));
      const member = await services.members.setRoles(actor, account.id, params["member_id"]!, names);
      return memberResource(member, services.accounts);
    },
  }),
  operation({
    id: "member_delete",
    method: "DELETE",
    path: `${base}/{member_id}`,
    summary: "Remove a member, or withdraw an invitation",
    access: edit,
    result: z.object({ id: z.string() }),
    async handle({ account, actor, params, services }) {
      const id = params["member_id"]!;
      await services.members.remove(actor, account.id, id);
      return { id };
    },
  }),
  listOperation({
    id: "role_list",
    method: "GET",
    path: "/accounts/{account_id}/roles",
    summary: "List the roles that members can have",
    access: read,
    query: pageQuery({ default: 20, max: 50 }),
    result: RoleSchema,
    handle: async ({ query }) => paginate(roles.map(roleResource), query),
  }),
  operation({
    id: "role_get",
    method: "GET",
    path: "/accounts/{account_id}/roles/{role_id}",
    summary: "Get a role",
    access: read,
    result: RoleSchema,
    async handle({ params }) {
      const role = findRole(params["role_id"]!);
      if (role === undefined) throw memberErrors.noRole(params["role_id"]!);
      return roleResource(role);
    },
  }),
];
