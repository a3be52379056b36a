import { bytesOf } from "../bytes.ts";
import type { DescribedBinding } from "../products/bindings.ts";
import type { DescribedModule } from "../products/modules.ts";
import { fileNameFor } from "./names.ts";
import { HclExpression, type HclAttributes, type HclValue } from "./hcl.ts";
import {
  cronsOf,
  nameIn,
  NotExpressible,
  type TerraformContext,
  type TerraformResource,
} from "./terraform-resource.ts";

type Fields = Record<string, HclValue>;

/** A script of one module, with its schedules and its own host. */
export function scriptResources(value: Fields, context: TerraformContext): TerraformResource[] {
  const name = nameIn(value["name"]);
  const modules = value["modules"] as unknown as DescribedModule[];
  if (modules.length !== 1)
    throw new NotExpressible("the provider uploads one module: bundle the code, or deploy it with wrangler");
  const owner = { account_id: context.accountId, script_name: name };
  const importId = `${context.accountId}/${name}`;
  const script: TerraformResource = {
    type: "cloudflare_workers_script",
    attributes: { ...owner, ...codeOf(value, modules[0]!, name, context) },
    importId,
  };
  const schedules = value["schedules"] as string[];
  const crons: TerraformResource[] =
    schedules.length === 0
      ? []
      : [
          {
            type: "cloudflare_workers_cron_trigger",
            attributes: { ...owner, schedules: cronsOf(schedules) },
            importId,
          },
        ];
  const host: TerraformResource = {
    type: "cloudflare_workers_script_subdomain",
    attributes: { ...owner, ...(value["subdomain"] as Fields) },
    importId,
  };
  return [script, ...crons, host];
}

function codeOf(
  value: Fields,
  module: DescribedModule,
  name: string,
  context: TerraformContext,
): HclAttributes {
  const file = context.file(fileNameFor(`${name}/${module.name}`, ".js"), bytesOf(module.content));
  const { limits, placement, compatibility_date, compatibility_flags, observability } = value;
  const { enabled, head_sampling_rate } = observability as Fields;
  return {
    content_file: file,
    content_sha256: new HclExpression(`filesha256(${file.code})`),
    [value["service_worker"] === true ? "body_part" : "main_module"]: value["main_module"],
    compatibility_date: compatibility_date ?? undefined,
    compatibility_flags,
    bindings: (value["bindings"] as unknown as DescribedBinding[]).map((each) =>
      bindingOf(each as Fields, name, context),
    ),
    limits: Object.keys(limits as object).length === 0 ? undefined : limits,
    placement: placement ?? undefined,
    observability: { enabled: enabled ?? false, head_sampling_rate },
  };
}

function bindingOf(binding: Fields, script: string, context: TerraformContext): HclValue {
  const { type, name, ...fields } = binding as Fields & { type: string; name: string };
  switch (type) {
    case "secret_text":
      return { type, name, text: context.secret(`${script}_${name}`) };
    case "kv_namespace":
      return { type, name, namespace_id: context.idOf("kv_namespace", nameIn(fields["namespace"])) };
    case "d1":
      return { type, name, id: context.idOf("d1_database", nameIn(fields["database"])) };
    case "json":
      return { type, name, json: JSON.stringify(fields["json"]) };
    default:
      return { type, name, ...fields };
  }
}
