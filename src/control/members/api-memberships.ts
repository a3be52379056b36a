import { z } from "zod";
import { operationsFor, type Call } from "../api/operation.ts";
import { pageQuery, paginate } from "../api/pagination.ts";
import { permissionGroups } from "../access/permissions.ts";
import type { Account, Accounts } from "../accounts/accounts.ts";
import { AccountSchema, accountResource } from "./api-accounts.ts";
import { GrantsSchema } from "./api-members.ts";
import { memberErrors } from "./errors.ts";
import { isInvitation, isOpen, type Member, type Members } from "./members.ts";
import { grantsOf, permissionsOf } from "../accounts/roles.ts";
import { sensitive } from "../api/sensitive.ts";

/** The services that these operations use. */
interface Services {
  accounts: Accounts;
  members: Members;
}

const { listOperation, operation } = operationsFor<Services>();

const statuses = ["accepted", "pending", "rejected"] as const;
const MembershipSchema = z
  .object({
    id: z.string(),
    status: z.enum(statuses),
    account: AccountSchema,
    roles: z.array(z.string()),
    permissions: GrantsSchema,
    api_access_enabled: z.boolean().nullable(),
  })
  .meta({ id: "Membership" });

interface Belonging {
  member: Member;
  account: Account;
}
const statusOf = (member: Member): (typeof statuses)[number] =>
  isInvitation(member) ? member.status : "accepted";

const membershipResource = ({ member, account }: Belonging): z.input<typeof MembershipSchema> => ({
  id: member.id,
  status: statusOf(member),
  account: accountResource(account),
  roles: member.roles,
  permissions: grantsOf(permissionsOf(member.roles)),
  api_access_enabled: null,
});

/** A user's memberships, rejected invitations and open invitations, each with its account. */
function belongingsOf(userId: string, { accounts }: Services): Belonging[] {
  const invitations = accounts.invitationsFor(accounts.findUser(userId)?.email ?? "");
  const open = invitations.filter((invitation) => invitation.status === "rejected" || isOpen(invitation));
  return [...accounts.membershipsOf(userId), ...open].flatMap((member) => {
    const account = accounts.find(member.accountId);
    return account === undefined ? [] : [{ member, account }];
  });
}

export type OwnCall = Pick<Call<unknown, unknown, Services>, "params" | "actor" | "services">;
export function ownBelonging({ actor, services }: OwnCall, id: string): Belonging {
  const found = belongingsOf(actor.userId!, services).find(({ member }) => member.id === id);
  if (found === undefined) throw memberErrors.noMembership(id);
  return found;
}

const read = { scope: "user", permission: "memberships:read" } as const;
const edit = { scope: "user", permission: "memberships:edit" } as const;
const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The body of a call that accepts or rejects an invitation. */
export const AnswerSchema = z.strictObject({
  status: z.enum(["accepted", "rejected"]),
  /** The secret in the invitation's URL. */
  secret: sensitive(z.string().max(200)).optional(),
});

/**
 * Accepts or rejects an invitation of the caller. Accepting a membership again does nothing; rejecting one
 * throws.
 */
export async function answerInvitation(
  call: OwnCall,
  id: string,
  { status, secret }: z.output<typeof AnswerSchema>,
): Promise<void> {
  const { member } = ownBelonging(call, id);
  if (!isInvitation(member)) {
    if (status === "accepted") return;
    throw memberErrors.noInvitation();
  }
  const { accounts, members } = call.services;
  if (status === "rejected") await members.reject(member);
  else await members.accept(accounts.findUser(call.actor.userId!)!, id, secret ?? "");
}

const OrganizationSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.enum(["member", "invited"]),
    roles: z.array(z.string()),
    permissions: z.array(z.string()),
  })
  .meta({ id: "Organization" });

const organizationResource = ({ member, account }: Belonging): z.input<typeof OrganizationSchema> => {
  const permissions = permissionsOf(member.roles);
  return {
    id: account.id,
    name: account.name,
    status: isInvitation(member) ? "invited" : "member",
    roles: member.roles,
    permissions: permissionGroups.filter(({ key }) => permissions.has(key)).map(({ key }) => `#${key}`),
  };
};

export const membershipOperations = [
  listOperation({
    id: "membership_list",
    method: "GET",
    path: "/memberships",
    summary: "List the accounts that the caller's user is a member of, or invited to",
    access: read,
    query: pageQuery({ default: 20, max: 50 }).extend({
      status: z.enum(statuses).optional(),
      name: z.string().max(100).optional(),
      "account.name": z.string().max(100).optional(),
      order: z.enum(["id", "account.name", "status"]).default("id"),
      direction: z.enum(["asc", "desc"]).default("asc"),
    }),
    result: MembershipSchema,
    async handle({ query, actor, services }) {
      const name = query["account.name"] ?? query.name;
      const found = belongingsOf(actor.userId!, services).filter(
        ({ member, account }) =>
          (query.status === undefined || statusOf(member) === query.status) &&
          (name === undefined || account.name === name),
      );
      const key = {
        id: ({ member }: Belonging) => member.id,
        status: ({ member }: Belonging) => statusOf(member) as string,
        "account.name": ({ account }: Belonging) => account.name,
      }[query.order];
      const sign = query.direction === "asc" ? 1 : -1;
      found.sort((a, b) => sign * byText(key(a), key(b)));
      const page = paginate(found, query);
      return { ...page, items: page.items.map(membershipResource) };
    },
  }),
  operation({
    id: "membership_get",
    method: "GET",
    path: "/memberships/{membership_id}",
    summary: "Get a membership of the caller's user",
    access: read,
    result: MembershipSchema,
    handle: async (call) => membershipResource(ownBelonging(call, call.params["membership_id"]!)),
  }),
  operation({
    id: "membership_update",
    method: "PUT",
    path: "/memberships/{membership_id}",
    summary: "Accept an invitation with its secret, or reject it",
    access: edit,
    body: AnswerSchema,
    result: MembershipSchema,
    async handle(call) {
      const id = call.params["membership_id"]!;
      await answerInvitation(call, id, call.body);
      return membershipResource(ownBelonging(call, id));
    },
  }),
  operation({
    id: "membership_delete",
    method: "DELETE",
    path: "/memberships/{membership_id}",
    summary: "Leave an account, or reject an invitation",
    access: edit,
    result: z.object({ id: z.string() }),
    async handle(call) {
      const { member } = ownBelonging(call, call.params["membership_id"]!);
      if (isInvitation(member)) await call.services.members.reject(member);
      else await call.services.members.leave(member);
      return { id: member.id };
    },
  }),
  listOperation({
    id: "organization_list",
    method: "GET",
    path: "/user/organizations",
    summary: "List the caller's memberships as organizations, the older name of accounts",
    access: read,
    query: pageQuery({ default: 20, max: 50 }).extend({
      name: z.string().max(100).optional(),
      status: z.enum(["member", "invited"]).optional(),
      order: z.enum(["id", "name", "status"]).default("id"),
      direction: z.enum(["asc", "desc"]).default("asc"),
      match: z.enum(["any", "all"]).default("all"),
    }),
    result: OrganizationSchema,
    async handle({ query, actor, services }) {
      const asked = [
        ...(query.name === undefined ? [] : [(each: Organization) => each.name === query.name]),
        ...(query.status === undefined ? [] : [(each: Organization) => each.status === query.status]),
      ];
      const matches = (each: Organization): boolean =>
        query.match === "all" || asked.length === 0
          ? asked.every((holds) => holds(each))
          : asked.some((holds) => holds(each));
      const found = belongingsOf(actor.userId!, services)
        .filter(({ member }) => statusOf(member) !== "rejected")
        .map(organizationResource)
        .filter(matches);
      const sign = query.direction === "asc" ? 1 : -1;
      found.sort((a, b) => sign * byText(a[query.order], b[query.order]));
      return paginate(found, query);
    },
  }),
  operation({
    id: "organization_get",
    method: "GET",
    path: "/user/organizations/{organization_id}",
    summary: "Get an account of the caller's user as an organization",
    access: read,
    result: OrganizationSchema,
    async handle({ actor, params, services }) {
      const id = params["organization_id"]!;
      const found = belongingsOf(actor.userId!, services).find(({ account }) => account.id === id);
      if (found === undefined) throw memberErrors.noMembership(id);
      return organizationResource(found);
    },
  }),
];
type Organization = z.input<typeof OrganizationSchema>;
