import { z } from "zod";
import { authenticate, type Callers } from "../api/server/auth.ts";
import { apiErrors } from "../api/errors.ts";
import { operationsFor } from "../api/operation.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Invitation, Accounts } from "../accounts/accounts.ts";
import { AnswerSchema, answerInvitation } from "./api-memberships.ts";
import { memberErrors } from "./errors.ts";
import { isOpen, type Members } from "./members.ts";

/** The services that these operations use. */
interface Services extends Callers {
  accounts: Accounts;
  members: Members;
}

const { operation } = operationsFor<Services>();

const InviteSchema = z
  .object({
    id: z.string(),
    status: z.enum(["pending", "accepted", "rejected", "expired"]),
    invited_member_id: z.string().nullable(),
    invited_member_email: z.string(),
    invited_by: z.string().optional(),
    invited_on: z.string(),
    expires_on: z.string(),
    organization_id: z.string(),
    organization_name: z.string(),
    organization_is_enforcing_twofactor: z.boolean(),
    roles: z.array(z.string()),
  })
  .meta({ id: "Invite" });

function inviteResource(invitation: Invitation, { accounts }: Services): z.input<typeof InviteSchema> {
  const account = accounts.find(invitation.accountId);
  const isExpired = invitation.status === "pending" && !isOpen(invitation);
  return {
    id: invitation.id,
    status: isExpired ? "expired" : invitation.status,
    invited_member_id: accounts.findUserByEmail(invitation.email)?.id ?? null,
    invited_member_email: invitation.email,
    ...(invitation.invitedBy === null ? {} : { invited_by: invitation.invitedBy }),
    invited_on: isoTime(invitation.invitedOn),
    expires_on: isoTime(invitation.expiresOn),
    organization_id: invitation.accountId,
    organization_name: account?.name ?? "",
    organization_is_enforcing_twofactor: account?.enforceTwofactor ?? false,
    roles: invitation.roles,
  };
}

function invitationsOf(userId: string, { accounts }: Services): Invitation[] {
  return accounts.invitationsFor(accounts.findUser(userId)?.email ?? "");
}

function ownInvitation(userId: string, id: string, services: Services): Invitation {
  const invitation = invitationsOf(userId, services).find((each) => each.id === id);
  if (invitation === undefined) throw memberErrors.noMembership(id);
  return invitation;
}

const read = { scope: "user", permission: "memberships:read" } as const;
const path = "/user/invites";

const AcceptedSchema = z
  .object({
    id: z.string(),
    user: z.object({ id: z.string(), email: z.string() }),
    account: z.object({ id: z.string(), name: z.string() }),
    roles: z.array(z.string()),
    token: z.string(),
  })
  .meta({ id: "AcceptedInvitation" });

export const invitationOperations = [
  operation({
    id: "invite_list",
    method: "GET",
    path,
    summary: "List the invitations to the address of the caller's user",
    access: read,
    result: z.array(InviteSchema),
    handle: async ({ actor, services }) =>
      invitationsOf(actor.userId!, services).map((each) => inviteResource(each, services)),
  }),
  operation({
    id: "invite_get",
    method: "GET",
    path: `${path}/{invite_id}`,
    summary: "Get an invitation to the address of the caller's user",
    access: read,
    result: InviteSchema,
    handle: async ({ actor, params, services }) =>
      inviteResource(ownInvitation(actor.userId!, params["invite_id"]!, services), services),
  }),
  operation({
    id: "invite_edit",
    method: "PATCH",
    path: `${path}/{invite_id}`,
    summary: "Accept an invitation with its secret, or reject it",
    access: { scope: "user", permission: "memberships:edit" },
    body: AnswerSchema,
    result: InviteSchema,
    async handle(call) {
      const { actor, params, services, body } = call;
      const invitation = ownInvitation(actor.userId!, params["invite_id"]!, services);
      await answerInvitation(call, invitation.id, body);
      return { ...inviteResource(invitation, services), status: body.status };
    },
  }),
  operation({
    id: "invite_accept",
    method: "POST",
    path: `${path}/{invite_id}/accept`,
    summary: "Become a user with an invitation's URL. The user's first API token is shown only once",
    access: { scope: "own" },
    query: z.object({ secret: z.string().max(200).optional() }),
    result: AcceptedSchema,
    async handle({ params, query, services, incoming, clientIp }) {
      if (query.secret === undefined) {
        await authenticate(incoming.headers, clientIp, services);
        throw apiErrors.invalid(
          "Expected the secret from the invitation's URL for secret but received nothing",
          "/query/secret",
        );
      }
      const { user, membership, token } = await services.members.redeem(params["invite_id"]!, query.secret);
      const account = services.accounts.find(membership.accountId);
      return {
        id: membership.id,
        user: { id: user.id, email: user.email },
        account: { id: membership.accountId, name: account?.name ?? "" },
        roles: membership.roles,
        token,
      };
    },
  }),
];
