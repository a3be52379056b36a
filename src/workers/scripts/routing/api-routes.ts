import { z } from "zod";
import { readJson } from "../../../control/api/body.ts";
import { operationsFor } from "../../../control/api/operation.ts";
import { accountScripts, editAccess, nameOf, type ScriptServices } from "../api-collection.ts";
import type { ScriptRoute } from "./routes.ts";
import { requireRoutesEdit, zoneOfPattern } from "./zone-of-host.ts";
import { routeErrorCodes } from "./api-errors.ts";

const { operation } = operationsFor<ScriptServices>(routeErrorCodes);

const base = "/zones/{zone_id}/workers/routes";
const routePath = `${base}/{route_id}`;
const idIn = (params: Record<string, string>): string => params["route_id"]!;
const read = { scope: "zone", permission: "workers_routes:read" } as const;
const edit = { scope: "zone", permission: "workers_routes:edit" } as const;

const RouteSchema = z
  .object({ id: z.string(), pattern: z.string(), script: z.string().nullable() })
  .meta({ id: "ScriptRoute" });
const RouteInputSchema = z.strictObject({
  pattern: z.string().min(1).max(1024),
  script: z.string().max(255).nullish(),
  // Accepted and ignored, so that a response can be sent back.
  id: z.string().optional(),
});
const routeResource = ({ id, pattern, script }: ScriptRoute): z.input<typeof RouteSchema> => ({
  id,
  pattern,
  script,
});
/** Some clients write an empty name for a route without a script. */
const scriptOf = ({ script }: z.output<typeof RouteInputSchema>): string | null => script || null;

const ScriptRoutesSchema = z
  .array(
    z.union([
      z.string(),
      z.strictObject({
        pattern: z.string(),
        zone_id: z.string().optional(),
        zone_name: z.string().optional(),
        custom_domain: z.literal(false).optional(),
      }),
    ]),
  )
  .max(1000);
const bodyBytesMax = 1024 * 1024;

/** Routes: which URLs of a zone go to which script. */
export const routeOperations = [
  operation({
    id: "route_list",
    method: "GET",
    path: base,
    summary: "List the zone's routes to scripts",
    access: read,
    result: z.array(RouteSchema),
    handle: async ({ zone, services }) => (await services.routes.list(zone.id)).map(routeResource),
  }),
  operation({
    id: "route_create",
    method: "POST",
    path: base,
    summary: "Route URLs of the zone to a script, or past all scripts",
    access: edit,
    body: RouteInputSchema,
    result: RouteSchema,
    handle: async ({ zone, body, services }) =>
      routeResource(await services.routes.create(zone, body.pattern, scriptOf(body))),
  }),
  operation({
    id: "route_get",
    method: "GET",
    path: routePath,
    summary: "Get a route",
    access: read,
    result: RouteSchema,
    handle: async ({ zone, params, services }) =>
      routeResource(await services.routes.get(zone.id, idIn(params))),
  }),
  operation({
    id: "route_update",
    method: "PUT",
    path: routePath,
    summary: "Change a route",
    access: edit,
    body: RouteInputSchema,
    result: RouteSchema,
    handle: async ({ zone, params, body, services }) =>
      routeResource(await services.routes.update(zone, idIn(params), body.pattern, scriptOf(body))),
  }),
  operation({
    id: "route_delete",
    method: "DELETE",
    path: routePath,
    summary: "Delete a route",
    access: edit,
    result: z.object({ id: z.string() }),
    async handle({ zone, params, services }) {
      const id = idIn(params);
      await services.routes.delete(zone, id);
      return { id };
    },
  }),
  operation({
    id: "script_routes_put",
    method: "PUT",
    path: `${accountScripts.path}/{script_name}/routes`,
    summary: "Replace the routes to a script, in all zones of the account",
    access: editAccess,
    body: ScriptRoutesSchema,
    bodyKind: "own",
    acceptAnyContentType: true,
    result: z.array(z.string()),
    async handle(call) {
      const { account, incoming, services } = call;
      const given = await readJson(incoming, ScriptRoutesSchema, bodyBytesMax);
      const wanted = given.map((each) => {
        const route = typeof each === "string" ? { pattern: each } : each;
        return { pattern: route.pattern, zone: zoneOfPattern(call, route, route.pattern) };
      });
      await services.routes.replace(account.id, nameOf(call), wanted, (zone) =>
        requireRoutesEdit(call, zone),
      );
      return wanted.map(({ pattern }) => pattern);
    },
  }),
];
