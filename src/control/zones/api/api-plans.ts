import { z } from "zod";
import { ApiError } from "../../api/errors.ts";
import { operationsFor } from "../../api/operation.ts";
import { pageQuery, paginate } from "../../api/pagination.ts";
import { show } from "../../../platform/util/json.ts";
import { findPlan, planResource } from "../plans.ts";
import { planNames, type PlanName } from "../../../platform/config/plan-names.ts";

const { listOperation, operation } = operationsFor<object>();

const AvailablePlanSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    price: z.number(),
    currency: z.string(),
    frequency: z.enum(["weekly", "monthly", "quarterly", "yearly"]),
    is_subscribed: z.boolean(),
    can_subscribe: z.boolean(),
    legacy_id: z.string(),
    legacy_discount: z.boolean(),
    externally_managed: z.boolean(),
  })
  .meta({ id: "AvailablePlan" });

const resource = (name: PlanName, current: PlanName): z.input<typeof AvailablePlanSchema> => ({
  ...planResource(name),
  frequency: "monthly",
  is_subscribed: name === current,
});

const path = "/zones/{zone_id}/available_plans";
const access = { scope: "zone", permission: "zone:read" } as const;

export const planOperations = [
  listOperation({
    id: "zone_available_plans_list",
    method: "GET",
    path,
    summary: "List the plans available to the zone",
    access,
    query: pageQuery({ default: 50, max: 50 }),
    result: AvailablePlanSchema,
    handle: async ({ zone, query }) =>
      paginate(
        planNames.map((name) => resource(name, zone.plan)),
        query,
      ),
  }),
  operation({
    id: "zone_available_plan_get",
    method: "GET",
    path: `${path}/{plan_id}`,
    summary: "Get a plan available to the zone",
    access,
    result: AvailablePlanSchema,
    async handle({ zone, params }) {
      const plan = findPlan(params["plan_id"]!);
      if (plan !== undefined) return resource(plan, zone.plan);
      throw new ApiError(404, 1004, `No plan has the id ${show(params["plan_id"])}`);
    },
  }),
];
