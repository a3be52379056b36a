import type { IncomingMessage } from "node:http";
import { z } from "zod";
import type { Actor } from "../access/actor.ts";
import type { Accounts } from "../accounts/accounts.ts";
import type { CallReader } from "../audit/audit.ts";
import type { AuditedCall } from "../audit/entry.ts";
import { operationsFor, type Operation } from "../api/operation.ts";
import { newUuid } from "../../platform/util/ids.ts";

/** A sign-in as the audit log describes it. It is not an operation of the API. */
export const signInOperation = operationsFor<object>().operation({
  id: "dashboard_session_create",
  method: "POST",
  path: "/dashboard/session",
  summary: "Sign in to the console",
  access: { scope: "own" },
  result: z.null(),
  handle: async () => null,
}) as Operation;

/** A sign-in changes no existing resource. */
export const signInReader: CallReader = { before: async () => null, statusOf: () => 500 };

/** The caller of a sign-in, and the account that owns its token. With a user's token, the entry is in the user's log. */
export const signInOf = (
  incoming: IncomingMessage,
  actor: Actor,
  accounts: Pick<Accounts, "find">,
): AuditedCall => ({
  params: {},
  incoming,
  requestId: newUuid(),
  clientIp: incoming.socket.remoteAddress ?? "",
  actor,
  account: actor.userId === null ? accounts.find(actor.ownerId) : undefined,
  zone: undefined,
});
