import { z } from "zod";
import type { Change, Write } from "../../../platform/storage/storage.ts";
import { scriptErrors } from "../errors.ts";
import type { ScriptOwner, Script, StoredBinding } from "../script.ts";
import { objectErrors } from "./object-errors.ts";
import type { ObjectExports, Reconciliation } from "./object-exports.ts";

const className = z.string().min(1).max(255);
const classNames = z.array(className).max(100);
const step = {
  new_classes: classNames.optional(),
  new_sqlite_classes: classNames.optional(),
  deleted_classes: classNames.optional(),
  renamed_classes: z
    .array(z.strictObject({ from: className, to: className }))
    .max(100)
    .optional(),
  transferred_classes: z
    .array(z.strictObject({ from: className, from_script: z.string().min(1).max(255), to: className }))
    .max(100)
    .optional(),
};
const tag = z.string().max(255);

/** Migrations of an upload, in either form: one step beside the tags, or several. */
export const MigrationsSchema = z
  .strictObject({
    old_tag: tag.nullish(),
    new_tag: tag.nullish(),
    tag: tag.nullish(),
    steps: z.array(z.strictObject(step)).max(1000).optional(),
    ...step,
  })
  .meta({ id: "ScriptMigrations" });

export type MigrationStep = z.output<z.ZodObject<typeof step>>;

/** Changes of a script's classes of Durable Objects. */
export interface Migrations {
  /** The tag that the script must have now. */
  oldTag: string | null;
  newTag: string | null;
  steps: readonly MigrationStep[];
}

export function readMigrations(
  given: z.output<typeof MigrationsSchema> | null | undefined,
): Migrations | undefined {
  if (given == null) return undefined;
  const { old_tag: oldTag = null, new_tag, tag: only, steps = [], ...first } = given;
  const own = Object.values(first).some((each) => each !== undefined) ? [first] : [];
  if (own.length > 0 && steps.length > 0)
    throw scriptErrors.invalid(
      "Expected either steps or one step in migrations, but received both",
      "/metadata/migrations",
    );
  return { oldTag, newTag: new_tag ?? only ?? null, steps: [...own, ...steps] };
}

/** A new version, within the transaction that stores it. */
export interface ObjectChange {
  trx: Write;
  changed: (change: Change) => void;
  owner: ScriptOwner;
  script: Script;
  migrations: Migrations | undefined;
  /** The wanted classes, instead of migrations. */
  exports: ObjectExports | undefined;
  /** The sources of transfers that the previous version expects, by class. */
  transfers: Readonly<Record<string, string>>;
  /** The names that the script exports; undefined if its source does not show them. */
  exportNames: ReadonlySet<string> | undefined;
  bindings: readonly StoredBinding[];
}

/** The properties of a new version: its bindings with the ids of namespaces, its classes, and the script's tag. */
export interface ObjectPlan {
  bindings: readonly StoredBinding[];
  classes: readonly string[];
  /** The sources of transfers that it expects, by class. */
  transfers: Readonly<Record<string, string>>;
  reconciliation?: Reconciliation | undefined;
  migrationTag: string | null;
  /** Writes the changes, after the row of the script has been written. */
  write(): Promise<void>;
}

/** Plans the Durable Objects of a new version. Set by the capability of objects, which this room cannot import. */
export type PlanObjects = (change: ObjectChange) => Promise<ObjectPlan>;

/** The plan of a version that neither has nor uses objects. */
export const planWithoutObjects: PlanObjects = async ({ script, migrations, exports, bindings }) => {
  if (
    migrations !== undefined ||
    exports !== undefined ||
    bindings.some(({ type }) => type === "durable_object_namespace")
  )
    throw objectErrors.unavailable();
  return { bindings, classes: [], transfers: {}, migrationTag: script.migrationTag, write: async () => {} };
};
