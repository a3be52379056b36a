import { z } from "zod";
import { readJson } from "../../../control/api/body.ts";
import { operationsFor } from "../../../control/api/operation.ts";
import {
  accountScripts,
  editAccess,
  nameOf,
  readAccess,
  scriptOf,
  type AnyCall,
  type ScriptServices,
} from "../api-collection.ts";
import type { Script } from "../script.ts";
import { subdomainErrors } from "./errors.ts";
import { subdomainErrorCodes } from "./api-errors.ts";

const { operation, rawOperation } = operationsFor<ScriptServices>(subdomainErrorCodes);

const account = "/accounts/{account_id}/workers";
const script = `${accountScripts.path}/{script_name}`;
const read = { access: readAccess } as const;
const edit = { access: editAccess } as const;
/** Clients send these bodies as plain text or as an array. */
const own = { bodyKind: "own", acceptAnyContentType: true } as const;
const bodyBytesMax = 1024 * 1024;

const SubdomainSchema = z.object({ subdomain: z.string() });
const SubdomainInputSchema = z.strictObject({ subdomain: z.string() });
const ScriptSubdomainSchema = z.object({ enabled: z.boolean(), previews_enabled: z.boolean() });
const ScriptSubdomainInputSchema = z.strictObject({
  enabled: z.boolean(),
  previews_enabled: z.boolean().optional(),
});

const scriptSubdomain = ({ subdomainEnabled, previewsEnabled }: Script) => ({
  enabled: subdomainEnabled,
  previews_enabled: previewsEnabled,
});

/** Host names of scripts without a zone. */
export const subdomainOperations = [
  operation({
    id: "subdomain_get",
    method: "GET",
    path: `${account}/subdomain`,
    summary: "Get the account's subdomain, under which its scripts have host names",
    ...read,
    result: SubdomainSchema,
    async handle({ account, services }) {
      const subdomain = await services.subdomains.of(account);
      if (subdomain === null) throw subdomainErrors.none();
      return { subdomain };
    },
  }),
  operation({
    id: "subdomain_put",
    method: "PUT",
    path: `${account}/subdomain`,
    summary: "Set the account's subdomain, under which its scripts have host names",
    ...edit,
    ...own,
    body: SubdomainInputSchema,
    result: SubdomainSchema,
    async handle({ account, incoming, services }) {
      const { subdomain } = await readJson(incoming, SubdomainInputSchema, bodyBytesMax);
      await services.subdomains.set(account, subdomain);
      return { subdomain };
    },
  }),
  rawOperation({
    id: "subdomain_delete",
    method: "DELETE",
    path: `${account}/subdomain`,
    summary: "Delete the account's subdomain, with the host names of its scripts",
    ...edit,
    async handle({ account, services, requestId }) {
      await services.subdomains.delete(account);
      return new Response(null, { status: 204, headers: { "x-request-id": requestId } });
    },
  }),
  operation({
    id: "subdomain_probe",
    method: "GET",
    path: `${account}/subdomains/{subdomain_name}`,
    summary: "Check whether a subdomain is taken; error 10032 if it is free",
    ...read,
    result: SubdomainSchema,
    async handle({ account, params, services }) {
      const name = params["subdomain_name"]!;
      const owner = services.subdomains.accountOf(name);
      if (owner === undefined) throw subdomainErrors.available(name);
      if (owner !== account.id) throw subdomainErrors.taken(name);
      return { subdomain: name };
    },
  }),
  operation({
    id: "script_subdomain_get",
    method: "GET",
    path: `${script}/subdomain`,
    summary: "Get whether a script has a host name below the account's subdomain",
    ...read,
    result: ScriptSubdomainSchema,
    handle: async (call) => scriptSubdomain(scriptOf(accountScripts, call)),
  }),
  operation({
    id: "script_subdomain_put",
    method: "POST",
    path: `${script}/subdomain`,
    summary: "Set whether a script has a host name below the account's subdomain",
    ...edit,
    body: ScriptSubdomainInputSchema,
    result: ScriptSubdomainSchema,
    async handle(call) {
      const { enabled, previews_enabled: given } = call.body;
      // Newer clients omit `previews_enabled` when it equals `enabled`.
      const isNewer = apiDateOf(call) >= "2025-08-01";
      const previews = given ?? (isNewer ? enabled : scriptOf(accountScripts, call).previewsEnabled);
      if (previews && given === true)
        call.messages.push({
          code: 10069,
          message: "previews_enabled is kept, but versions have no preview URLs here",
        });
      return scriptSubdomain(await setSubdomain(call, enabled, previews));
    },
  }),
  operation({
    id: "script_subdomain_delete",
    method: "DELETE",
    path: `${script}/subdomain`,
    summary: "Remove a script's host name below the account's subdomain",
    ...edit,
    result: ScriptSubdomainSchema,
    handle: async (call) => scriptSubdomain(await setSubdomain(call, false, false)),
  }),
];

const setSubdomain = async (
  call: AnyCall,
  subdomainEnabled: boolean,
  previewsEnabled: boolean,
): Promise<Script> =>
  call.services.scripts.edit(accountScripts.owner(call), nameOf(call), () => ({
    subdomainEnabled,
    previewsEnabled,
  }));

const apiDateOf = ({ incoming }: AnyCall): string =>
  String(incoming.headers["cloudflare-workers-script-api-date"] ?? "");
