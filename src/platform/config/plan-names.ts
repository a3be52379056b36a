/** Plans that a zone can have: values of the setting `default-plan` and of a zone's `plan`. */
export const planNames = ["free", "pro", "business", "enterprise"] as const;
/** The name of a plan in the API. */
export type PlanName = (typeof planNames)[number];
