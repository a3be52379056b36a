import { z } from "zod";
import { objectsIn } from "../account/lists.ts";
import { path } from "../account/path.ts";
import type { MigratedAccount } from "../account/account.ts";
import { CallRefused } from "../failure.ts";
import type { Reading } from "../product.ts";
import {
  bindingFor,
  comparableBinding,
  DescribedBindingSchema,
  describeBindings,
  scriptsOf,
  type DescribedBinding,
} from "./bindings.ts";
import { ModuleSchema, modulesIn, uploadOf } from "./modules.ts";

/** The parts that an account's script and one of a dispatch namespace have in common. */
export const codeShape = {
  name: z.string().min(1).max(255),
  main_module: z.string().max(1024),
  /** Whether the code is one file without exports, with `addEventListener`. */
  service_worker: z.boolean(),
  modules: z.array(ModuleSchema).min(1).max(2000),
  bindings: z.array(DescribedBindingSchema).max(1000),
  compatibility_date: z.string().max(32).nullable(),
  compatibility_flags: z.array(z.string().max(100)).max(100),
  usage_model: z.string().max(32),
  limits: z.record(z.string().max(32), z.number()),
  placement: z.record(z.string().max(32), z.unknown()).nullable(),
  observability: z.record(z.string().max(100), z.unknown()),
  tags: z.array(z.string().max(600)).max(100),
  /** The classes of Durable Objects that the script has. */
  object_classes: z.array(z.string().max(255)).max(100),
};
const schema = z.object(codeShape);
export type DescribedCode = z.output<typeof schema>;

/** Reads a script's code and settings. `at` is its path, and `summary` its entry in the list. */
export async function readCode(
  { account, leaveOut }: Reading,
  at: string,
  contentPath: string,
  summary: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const name = String(summary["id"]);
  const content = await account.client.bytes(contentPath);
  const modules = await modulesIn(content);
  const settings = ((await account.client.get(`${at}/settings`)).result ?? {}) as Record<string, unknown>;
  const bindings = await describeBindings(account, name, objectsIn(settings["bindings"]), leaveOut);
  if (summary["has_assets"] === true)
    leaveOut([name], "files of a site cannot be read: deploy them again with wrangler", "static_assets");
  if (objectsIn(settings["tail_consumers"]).length > 0)
    leaveOut([name], "an installation has no tail consumers", "tail_consumers");
  return {
    name,
    main_module: content.entrypoint ?? modules[0]?.name,
    service_worker: !content.contentType.startsWith("multipart/form-data"),
    modules,
    bindings,
    compatibility_date: settings["compatibility_date"] ?? null,
    compatibility_flags: settings["compatibility_flags"] ?? [],
    usage_model: settings["usage_model"] ?? "standard",
    limits: settings["limits"] ?? {},
    placement: settings["placement"] ?? null,
    observability: settings["observability"] ?? { enabled: false },
    tags: [...((settings["tags"] as string[] | null) ?? [])].sort(),
    object_classes: await objectClasses(account, name, leaveOut),
  };
}

/** Uploads the code with its bindings. Bindings to scripts that do not exist yet are added in a later pass. */
export async function writeCode(
  account: MigratedAccount,
  at: string,
  value: DescribedCode,
  before: { value: DescribedCode } | undefined,
): Promise<void> {
  const { main_module, modules, service_worker, limits, placement, observability, tags } = value;
  const missing = value.object_classes.filter((name) => before?.value.object_classes.includes(name) !== true);
  const scripts = await scriptNames(account);
  const present = value.bindings.filter((binding) =>
    scriptsOf(binding).every((script) => scripts.has(script) || script === value.name),
  );
  const bindings = await Promise.all(present.map(async (binding) => bindingFor(account, binding)));
  const metadata = {
    [service_worker ? "body_part" : "main_module"]: main_module,
    bindings: bindings.filter((binding) => binding !== undefined),
    ...(value.compatibility_date === null ? {} : { compatibility_date: value.compatibility_date }),
    compatibility_flags: value.compatibility_flags,
    usage_model: value.usage_model,
    limits,
    ...(placement === null ? {} : { placement }),
    observability,
    tags,
    keep_bindings: ["secret_text"],
    ...(missing.length === 0 ? {} : { migrations: await migrationsFor(account, value.name, missing) }),
  };
  await account.client.send("PUT", at, uploadOf(metadata, modules));
}

/** Equal scripts have equal code, settings and bindings; secrets are compared by name. */
export const comparableCode = <Code extends DescribedCode>({
  bindings,
  modules,
  ...others
}: Code): unknown => ({
  ...others,
  bindings: Object.fromEntries(bindings.map((binding) => [binding.name, comparableBinding(binding)])),
  modules: Object.fromEntries(modules.map((module) => [module.name, module])),
});

/** Secrets without a value cannot be written, and those of the target stay. */
export function reachableCode<Code extends DescribedCode>(code: Code, existing: Code | undefined): Code {
  const isSecret = ({ type }: DescribedBinding): boolean => type === "secret_text";
  const kept = existing?.bindings.filter(isSecret) ?? [];
  const names = new Set(kept.map(({ name }) => name));
  const wanted = code.bindings.filter(
    (binding) => !names.has(binding.name) && !(isSecret(binding) && binding["text"] === null),
  );
  const bindings = [...wanted, ...kept].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return { ...code, bindings };
}

const namespacesPath = (account: MigratedAccount): string =>
  path`/accounts/${account.accountId}/workers/durable_objects/namespaces`;

async function objectClasses(
  account: MigratedAccount,
  script: string,
  leaveOut: Reading["leaveOut"],
): Promise<string[]> {
  try {
    const { result } = await account.client.get(`${namespacesPath(account)}?per_page=1000`);
    const classes = objectsIn(result)
      .filter((each) => each["script"] === script)
      .map((each) => String(each["class"]));
    const names = classes.map((name) => `${script}: ${name}`);
    leaveOut(names, "the data of Durable Objects cannot be read: the classes begin empty", "object_data");
    return classes.sort();
  } catch (error) {
    if (error instanceof CallRefused && error.isAbsence) return [];
    throw error;
  }
}

async function scriptNames(account: MigratedAccount): Promise<ReadonlySet<string>> {
  const { result } = await account.client.get(path`/accounts/${account.accountId}/workers/scripts`);
  return new Set(objectsIn(result).map(({ id }) => String(id)));
}

async function migrationsFor(
  account: MigratedAccount,
  script: string,
  classes: readonly string[],
): Promise<object> {
  const { result } = await account.client.get(path`/accounts/${account.accountId}/workers/scripts`);
  const tag = objectsIn(result).find(({ id }) => id === script)?.["migration_tag"];
  return {
    ...(typeof tag === "string" ? { old_tag: tag } : {}),
    new_tag: `import-${classes.toSorted().join("-").slice(0, 200)}`,
    new_sqlite_classes: classes,
  };
}
