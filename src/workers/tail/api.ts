import { z } from "zod";
import { readBytes } from "../../control/api/body.ts";
import { baseUrl } from "../../control/api/base-url.ts";
import { apiErrors } from "../../control/api/errors.ts";
import { operationsFor, type Call } from "../../control/api/operation.ts";
import { validate } from "../../control/api/validation.ts";
import { ownerOf, type DispatchNamespaces } from "../scripts/namespaces/namespaces.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { parseJson } from "../../platform/util/json.ts";
import { FiltersSchema, type Filter } from "./filter.ts";
import { tailPath } from "./listener.ts";
import { tailPermission, type Tail, type TailScope, type Tails } from "./tails.ts";
import type { Scripts } from "../scripts/scripts.ts";
import { tailErrorCodes } from "./api-errors.ts";

/** The services that these operations use. */
interface Services {
  namespaces: DispatchNamespaces;
  scripts: Scripts;
  tails: Tails;
}

const { operation } = operationsFor<Services>(tailErrorCodes);

const TailSchema = z.object({ id: z.string(), expires_at: z.string() });
const NewTailSchema = TailSchema.extend({ url: z.string() }).meta({ id: "Tail" });
const InputSchema = z.strictObject({ filters: FiltersSchema.default([]) });

type AnyCall = Call<unknown, unknown, Services>;

/** The objects that can be tailed: a script, a customer's script, or everything of an account. */
const tailTargets: readonly { id: string; path: string; of: string; scope: (call: AnyCall) => TailScope }[] =
  [
    {
      id: "script_tail",
      path: "/accounts/{account_id}/workers/scripts/{script_name}/tails",
      of: "a script",
      scope: ({ account, params, services }) => ({
        accountId: account.id,
        scriptId: services.scripts.get({ accountId: account.id }, params["script_name"]!).id,
      }),
    },
    {
      id: "dispatch_script_tail",
      path: "/accounts/{account_id}/edge/dispatch/namespaces/{namespace_name}/scripts/{script_name}/tails",
      of: "a customer's script",
      scope({ account, params, services }) {
        const owner = ownerOf(services.namespaces.get(account.id, params["namespace_name"]!));
        return { accountId: account.id, scriptId: services.scripts.get(owner, params["script_name"]!).id };
      },
    },
    {
      id: "account_tail",
      path: "/accounts/{account_id}/workers/tails",
      of: "all scripts of an account, and of its customers",
      scope: ({ account }) => ({ accountId: account.id, scriptId: undefined }),
    },
  ];

const access = { scope: "account", permission: tailPermission } as const;

const shown = ({ id, expiresOn }: Tail): z.input<typeof TailSchema> => ({
  id,
  expires_at: isoTime(expiresOn),
});

export const tailOperations = tailTargets.flatMap(({ id, path, of, scope }) => [
  operation({
    id: `${id}_create`,
    audit: "ahead",
    isView: true,
    method: "POST",
    path,
    summary: `Watch ${of}: creates a WebSocket (trace-v1) that sends an event for each run`,
    access,
    body: InputSchema,
    bodyKind: "own",
    acceptAnyContentType: true,
    result: NewTailSchema,
    async handle(call) {
      const where = scope(call as AnyCall);
      const { tail, secret } = await call.services.tails.create(
        where,
        { kind: call.actor.kind, id: call.actor.id },
        await filtersOf(call as AnyCall),
      );
      return { ...shown(tail), url: `${baseUrl(call.incoming, "ws")}${tailPath(tail.id, secret)}` };
    },
  }),
  operation({
    id: `${id}_list`,
    method: "GET",
    path,
    summary: `List the tails (live logs) of ${of}`,
    access,
    result: z.array(TailSchema),
    handle: async (call) => call.services.tails.list(scope(call as AnyCall)).map(shown),
  }),
  operation({
    id: `${id}_delete`,
    audit: "ahead",
    isView: true,
    method: "DELETE",
    path: `${path}/{tail_id}`,
    summary: `Stop watching ${of}`,
    access,
    result: z.null(),
    async handle(call) {
      await call.services.tails.delete(scope(call as AnyCall), call.params["tail_id"]!);
      return null;
    },
  }),
]);

/** Clients send an empty body, JSON, or JSON labelled as text. */
async function filtersOf({ incoming, clientIp }: AnyCall): Promise<Filter[]> {
  const text = Buffer.from(await readBytes(incoming, 64 * 1024)).toString();
  const input = text.trim() === "" ? {} : parseJson(text, apiErrors.malformedJson);
  const { filters } = validate(InputSchema, input, "body");
  return filters.map((filter) =>
    filter.client_ip === undefined
      ? filter
      : { ...filter, client_ip: filter.client_ip.map((ip) => (ip === "self" ? clientIp : ip)) },
  );
}
