import { planNames, type PlanName } from "../../platform/config/plan-names.ts";

/** The limits of a plan. docs/reference/limits.md states the figures that the specification leaves open. */
export interface Plan {
  name: string;
  price: number;
  smartRouting: boolean;
  snippetsMax: number;
  /** Size of all files of one snippet. */
  snippetBytesMax: number;
  /** Limit on the subrequests of one run of a snippet. */
  snippetSubrequestsMax: number;
  dnsRecordsMax: number;
  dnsBatchOperationsMax: number;
  dnsTtlMin: number;
  dnsCommentLengthMax: number;
  dnsTagsMax: number;
  workflowRetentionDays: number;
  /** Bytes of a request's body that rules can see. Only the figures for free and enterprise are published. */
  ruleBodyBytesMax: number;
}

/** The plans of zones with their limits. Prices are informative: nothing is billed. */
export const plans: Record<PlanName, Plan> = {
  free: {
    name: "Free Website",
    price: 0,
    smartRouting: false,
    snippetsMax: 0,
    snippetBytesMax: 32 * 1024,
    snippetSubrequestsMax: 2,
    dnsRecordsMax: 1_000,
    dnsBatchOperationsMax: 200,
    dnsTtlMin: 60,
    dnsCommentLengthMax: 100,
    dnsTagsMax: 0,
    workflowRetentionDays: 3,
    ruleBodyBytesMax: 1024 * 1024,
  },
  pro: {
    name: "Pro Website",
    price: 20,
    smartRouting: true,
    snippetsMax: 25,
    snippetBytesMax: 32 * 1024,
    snippetSubrequestsMax: 2,
    dnsRecordsMax: 3_500,
    dnsBatchOperationsMax: 3_500,
    dnsTtlMin: 60,
    dnsCommentLengthMax: 500,
    dnsTagsMax: 20,
    workflowRetentionDays: 30,
    ruleBodyBytesMax: 128 * 1024,
  },
  business: {
    name: "Business Website",
    price: 200,
    smartRouting: true,
    snippetsMax: 50,
    snippetBytesMax: 32 * 1024,
    snippetSubrequestsMax: 3,
    dnsRecordsMax: 3_500,
    dnsBatchOperationsMax: 3_500,
    dnsTtlMin: 60,
    dnsCommentLengthMax: 500,
    dnsTagsMax: 20,
    workflowRetentionDays: 30,
    ruleBodyBytesMax: 128 * 1024,
  },
  enterprise: {
    name: "Enterprise Website",
    price: 0,
    smartRouting: true,
    snippetsMax: 300,
    snippetBytesMax: 32 * 1024,
    snippetSubrequestsMax: 5,
    dnsRecordsMax: 100_000,
    dnsBatchOperationsMax: 3_500,
    dnsTtlMin: 30,
    dnsCommentLengthMax: 500,
    dnsTagsMax: 20,
    workflowRetentionDays: 30,
    ruleBodyBytesMax: 128 * 1024,
  },
};

/** The plan in the form that zones have in the API, with a fixed id. */
export function planResource(name: PlanName) {
  const ids: Record<PlanName, string> = {
    free: "0feeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
    pro: "1feeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
    business: "2feeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
    enterprise: "94f3b7b768b0458b56d2cac4fe5ec0f9",
  };
  return {
    id: ids[name],
    name: plans[name].name,
    price: plans[name].price,
    currency: "USD",
    frequency: "monthly",
    is_subscribed: true,
    can_subscribe: true,
    legacy_id: name,
    legacy_discount: false,
    externally_managed: false,
  };
}

/** The plan with a name or with an id of the API; undefined if there is none. */
export const findPlan = (id: string): PlanName | undefined =>
  planNames.find((name) => name === id || planResource(name).id === id);
