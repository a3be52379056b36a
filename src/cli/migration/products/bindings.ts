import { z } from "zod";
import type { Named, MigratedAccount } from "../account/account.ts";
import { printable } from "../failure.ts";

/** A binding, described with the names of the things that it leads to instead of their ids. */
export const DescribedBindingSchema = z.looseObject({
  type: z.string().max(64),
  name: z.string().min(1).max(255),
});
export type DescribedBinding = z.output<typeof DescribedBindingSchema>;

/** Fields that hold an id, and the field that holds the name in the description. */
const references: Readonly<Record<string, { kind: Named; id: readonly string[]; name: string }>> = {
  kv_namespace: { kind: "kv_namespace", id: ["namespace_id"], name: "namespace" },
  d1: { kind: "d1_database", id: ["id", "database_id"], name: "database" },
};
/** The other fields of the types that an installation has. */
const fields: Readonly<Record<string, readonly string[]>> = {
  plain_text: ["text"],
  json: ["json"],
  version_metadata: [],
  images: [],
  queue: ["queue_name", "delivery_delay"],
  service: ["service", "entrypoint"],
  dispatch_namespace: ["namespace", "outbound"],
  durable_object_namespace: ["class_name", "script_name"],
  workflow: ["workflow_name", "class_name", "script_name"],
};

/** Describes the bindings of a script, sorted by name. `leaveOut` receives those that cannot be imported. */
export async function describeBindings(
  account: MigratedAccount,
  script: string,
  bindings: readonly Record<string, unknown>[],
  leaveOut: (names: readonly string[], why: string, product?: string) => void,
): Promise<DescribedBinding[]> {
  const described: DescribedBinding[] = [];
  for (const binding of bindings) {
    const [type, name] = [String(binding["type"]), String(binding["name"])];
    const title = `${script}: ${name}`;
    const reference = references[type];
    const known = fields[type];
    if (type === "secret_text") {
      leaveOut([title], "secrets cannot be read: fill in their values in the file", "secret");
      described.push({ type, name, text: null });
    } else if (reference !== undefined) {
      const id = reference.id.map((field) => binding[field]).find((value) => typeof value === "string");
      const target = (await account.namesOf(reference.kind)).get(String(id));
      if (target === undefined) leaveOut([title], `the ${type} that it names does not exist`, "binding");
      else described.push({ type, name, [reference.name]: target });
    } else if (known !== undefined) {
      const present = known.filter((field) => binding[field] !== undefined && binding[field] !== null);
      const value = Object.fromEntries(present.map((field) => [field, binding[field]]));
      if (value["script_name"] === script) delete value["script_name"];
      described.push({ type, name, ...value });
    } else if (type !== "assets") {
      leaveOut([title], `an installation has no bindings of the type ${printable(type)}`, "binding");
    }
  }
  return described.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** The binding for an upload to the account; undefined for a secret without a value, which keeps the one it has. */
export async function bindingFor(
  account: MigratedAccount,
  { type, name, ...value }: DescribedBinding,
): Promise<Record<string, unknown> | undefined> {
  if (type === "secret_text" && typeof value["text"] !== "string") return undefined;
  const reference = references[type];
  if (reference === undefined) return { type, name, ...value };
  const id = await account.idOf(reference.kind, String(value[reference.name]));
  return { type, name, [reference.id[0]!]: id };
}

/** The scripts that must exist before a script with this binding. */
export function scriptsOf(binding: DescribedBinding): string[] {
  const outbound = binding["outbound"] as { worker?: { service?: unknown } } | undefined;
  return [
    binding.type === "service" ? binding["service"] : undefined,
    binding["script_name"],
    outbound?.worker?.service,
  ].filter((each) => typeof each === "string");
}

/** A secret is compared by its name, because its value cannot be read. */
export const comparableBinding = (binding: DescribedBinding): unknown =>
  binding.type === "secret_text" ? { type: binding.type, name: binding.name } : binding;
