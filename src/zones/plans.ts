/** What a zone's plan entitles it to. Figures that the specification leaves open are stated in docs/reference/limits.md. */
export interface Plan {
  name: string;
  price: number;
  smartRouting: boolean;
  snippetsMax: number;
  /** Code of one snippet, all of its files together. */
  snippetBytesMax: number;
  /** Fetches that one run of a snippet may make. */
  snippetSubrequestsMax: number;
  dnsRecordsMax: number;
  dnsBatchOperationsMax: number;
  dnsTtlMin: number;
  dnsCommentLengthMax: number;
  dnsTagsMax: number;
  workflowRetentionDays: number;
}

export const planNames = ["free", "pro", "business", "enterprise"] as const;
export type PlanName = (typeof planNames)[number];

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
  },
};

/** The plan as zones carry it on the wire; its id is fixed, so that nothing drifts. */
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

export const findPlan = (id: string): PlanName | undefined =>
  planNames.find((name) => name === id || planResource(name).id === id);
