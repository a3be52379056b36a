import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { scriptErrorCodes } from "./api-errors.ts";
import { pageQuery, paginate } from "../../control/api/pagination.ts";
import { isoTime } from "../../platform/util/ids.ts";
import { codeOperations, contentResponse } from "./versions/api-code.ts";
import { domainOperations } from "./routing/api-domains.ts";
import { routeOperations } from "./routing/api-routes.ts";
import { secretOperations } from "./api-secrets.ts";
import { accountSettingsOperations, settingsOperations } from "./api-settings.ts";
import { subdomainOperations } from "./routing/api-subdomains.ts";
import { scriptVersionOperations } from "./versions/api-versions.ts";
import { serviceOperations } from "./api-services.ts";
import { workerVersionOperations } from "./versions/api-worker-versions.ts";
import { workerOperations } from "./api-workers.ts";
import { accountScripts, readAccess, scriptOf, tagFilter, type ScriptServices } from "./api-collection.ts";
import { ScriptSchema, scriptResource, TimeSchema } from "./resources.ts";
import type { Script } from "./script.ts";

const { listOperation, operation, rawOperation } = operationsFor<ScriptServices>(scriptErrorCodes);

const FoundSchema = z
  .object({
    id: z.string(),
    script_name: z.string(),
    service_name: z.string(),
    environment_name: z.literal("production"),
    environment_is_default: z.literal(true),
    created_on: TimeSchema,
    modified_on: TimeSchema,
  })
  .meta({ id: "FoundScript" });

const orders = {
  name: (a: Script, b: Script) => (a.name < b.name ? -1 : 1),
  created_on: (a: Script, b: Script) => a.createdOn - b.createdOn,
  modified_on: (a: Script, b: Script) => a.modifiedOn - b.modifiedOn,
};

const accountOperations = [
  operation({
    id: "script_list",
    method: "GET",
    path: accountScripts.path,
    summary: "List the account's scripts by name",
    access: readAccess,
    query: z.object({ tags: z.string().max(8192).optional() }),
    result: z.array(ScriptSchema),
    async handle(call) {
      const { tags } = call.query;
      const scripts = call.services.scripts.list(accountScripts.owner(call));
      const wanted = tags === undefined ? scripts : scripts.filter(tagFilter(tags));
      const found = await call.services.versions.currentOf(wanted);
      return found.map(({ script, version }) => scriptResource(script, version));
    },
  }),
  listOperation({
    id: "script_search",
    method: "GET",
    path: "/accounts/{account_id}/workers/scripts-search",
    summary: "Search the account's scripts by a part of their names, or an id",
    access: readAccess,
    query: pageQuery({ default: 10, max: 100 }).extend({
      name: z.string().max(255).optional(),
      id: z.string().max(64).optional(),
      order_by: z.enum(["name", "created_on", "modified_on"]).default("name"),
    }),
    result: FoundSchema,
    async handle(call) {
      const { name = "", id, order_by } = call.query;
      const found = call.services.scripts
        .list(accountScripts.owner(call))
        .filter((script) => script.name.includes(name) && (id === undefined || script.id === id))
        .sort(orders[order_by]);
      const page = paginate(found, call.query);
      return {
        ...page,
        items: page.items.map((script) => ({
          id: script.id,
          script_name: script.name,
          service_name: script.name,
          environment_name: "production" as const,
          environment_is_default: true as const,
          created_on: isoTime(script.createdOn),
          modified_on: isoTime(script.modifiedOn),
        })),
      };
    },
  }),
  rawOperation({
    id: "script_get",
    method: "GET",
    path: `${accountScripts.path}/{script_name}`,
    summary: "Get the code of a script as multipart/form-data, a part for each module",
    access: readAccess,
    async handle(call) {
      return contentResponse(call, await call.services.versions.current(scriptOf(accountScripts, call)));
    },
  }),
];

/** Scripts of an account, and how requests reach them. */
export const scriptOperations = [
  ...accountOperations,
  ...codeOperations(accountScripts),
  ...settingsOperations(accountScripts),
  ...accountSettingsOperations(accountScripts),
  ...secretOperations(accountScripts),
  ...scriptVersionOperations,
  ...subdomainOperations,
  ...routeOperations,
  ...domainOperations,
  ...workerOperations,
  ...workerVersionOperations,
  ...serviceOperations,
];
