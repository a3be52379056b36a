import { z } from "zod";
import { scriptErrors } from "../errors.ts";

const exportsMax = 1000;
const className = z.string().min(1).max(255);
const type = z.literal("durable-object");
const storage = z.enum(["sqlite", "legacy-kv"]);
const scriptName = z.string().min(1).max(255);

/** The wanted state of one class of Durable Objects, from `exports` of an upload. */
const ExportSchema = z.union([
  z.strictObject({ type, state: z.literal("created").optional(), storage }),
  z.strictObject({ type, state: z.literal("deleted") }),
  z.strictObject({ type, state: z.literal("renamed"), renamed_to: className }),
  z.strictObject({ type, state: z.literal("transferred"), transferred_to: scriptName }),
  z.strictObject({ type, state: z.literal("expecting-transfer"), storage, transfer_from: scriptName }),
]);

export const ExportsSchema = z
  .record(className, ExportSchema)
  .refine((all) => Object.keys(all).length <= exportsMax, { error: `at most ${exportsMax} classes` })
  .meta({ id: "ScriptExports" });

export type ObjectExport = z.output<typeof ExportSchema>;
/** By the name of the class. */
export type ObjectExports = ReadonlyMap<string, ObjectExport>;

/** A finding about one class; the scenarios are the public ones. */
export interface ExportFinding {
  class: string;
  scenario: string;
  message: string;
  suggestion?: string;
  namespace_id?: string;
  referencing_scripts?: readonly string[];
}

/** The changes from reconciling `exports` with the existing namespaces. */
export interface Reconciliation {
  created: string[];
  updated: string[];
  deleted: string[];
  renamed: { from: string; to: string }[];
  transferred: { class: string; phase: "committed"; to: string }[];
  transfer_pending: { class: string; from: string }[];
  warnings: ExportFinding[];
  info: ExportFinding[];
  removable_entries: string[];
}

const finding = z.object({
  class: z.string(),
  scenario: z.string(),
  message: z.string(),
  namespace_id: z.string().optional(),
  referencing_scripts: z.array(z.string()).readonly().optional(),
});
export const ReconciliationSchema = z
  .object({
    created: z.array(z.string()),
    updated: z.array(z.string()),
    deleted: z.array(z.string()),
    renamed: z.array(z.object({ from: z.string(), to: z.string() })),
    transferred: z.array(z.object({ class: z.string(), phase: z.literal("committed"), to: z.string() })),
    transfer_pending: z.array(z.object({ class: z.string(), from: z.string() })),
    warnings: z.array(finding),
    info: z.array(finding),
    removable_entries: z.array(z.string()),
  })
  .meta({ id: "ExportsReconciliation" });

/** Reads `exports` of an upload. Undefined without any. */
export function readExports(
  given: z.output<typeof ExportsSchema> | null | undefined,
  hasMigrations: boolean,
): ObjectExports | undefined {
  if (given == null) return undefined;
  if (hasMigrations)
    throw scriptErrors.invalid(
      "Expected either exports or migrations, but received both",
      "/metadata/exports",
    );
  return new Map(Object.entries(given));
}
