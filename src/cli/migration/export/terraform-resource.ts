import type { HclAttributes, HclExpression, HclValue } from "./hcl.ts";

/** A resource of the Terraform provider. */
export interface TerraformResource {
  type: string;
  attributes: HclAttributes;
  /** The id for an import block; undefined where the provider supports none. */
  importId?: string | undefined;
}
/** Raised for a resource that the provider cannot describe; the message is the reason. */
export class NotExpressible extends Error {}

/** The surroundings of a resource in the export. */
export interface TerraformContext {
  accountId: string;
  zoneId: string;
  /** The id of the zone in the configuration. */
  zone: HclExpression;
  /** The attribute `id` of another resource. Throws NotExpressible if the export does not have it. */
  idOf(product: string, key: string): HclExpression;
  /** Adds a file beside the configuration, and returns the expression of its path. */
  file(name: string, bytes: Uint8Array): HclExpression;
  /** Adds a sensitive variable. */
  secret(name: string): HclExpression;
}

/** Schedules in the form of the provider. */
export const cronsOf = (crons: HclValue | undefined): HclValue =>
  (crons as string[]).map((cron) => ({ cron }));

/** A field that the form of its product declares as text. */
export const nameIn = (value: HclValue | undefined): string => (typeof value === "string" ? value : "");
