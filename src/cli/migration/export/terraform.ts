import type { Document } from "../document.ts";
import type { DescribedResource } from "../product.ts";
import { HclExpression, hclBlock, type HclValue } from "./hcl.ts";
import { Labels } from "./names.ts";
import { NotExpressible, type TerraformContext, type TerraformResource } from "./terraform-resource.ts";
import { terraformProducts } from "./terraform-resources.ts";

export interface TerraformExport {
  /** Contents by name; a name may begin with `files/`. */
  files: Map<string, string | Uint8Array>;
  left: { product: string; key: string; why: string }[];
}

const head = `# Made by selvedge export. Needs the provider cloudflare 5.
terraform {
  required_version = ">= 1.5"
  required_providers {
    cloudflare = {
      source  = "cloudflare/cloudflare"
      version = "~> 5.0"
    }
  }
}
`;

/** The document as configuration of Terraform, with an import block for each resource that exists. */
export function exportTerraform(document: Document): TerraformExport {
  const files = new Map<string, string | Uint8Array>();
  const left: TerraformExport["left"] = [];
  const blocks = new Map<string, string[]>();
  const imports: string[] = [];
  const secrets = new Map<string, string>();
  const labels = new Map<string, Labels>();
  const labelFor = (type: string, text: string): string => {
    const ofType = labels.get(type) ?? new Labels();
    labels.set(type, ofType);
    return ofType.labelFor(text);
  };
  const referable = referableLabels(document, labelFor);
  for (const resource of document.resources) {
    const context = contextOf(document, resource, referable, files, (name) => {
      const known = secrets.get(name) ?? labelFor("variable", name);
      secrets.set(name, known);
      return new HclExpression(`var.${known}`);
    });
    try {
      for (const each of describe(resource, context)) {
        const label =
          referable.get(referenceKey(resource)) ??
          labelFor(each.type, `${resource.zone ?? ""} ${resource.key}`);
        const list = blocks.get(resource.product) ?? [];
        list.push(hclBlock("resource", [each.type, label], each.attributes));
        blocks.set(resource.product, list);
        const to = new HclExpression(`${each.type}.${label}`);
        if (each.importId !== undefined) imports.push(hclBlock("import", [], { to, id: each.importId }));
      }
    } catch (error) {
      if (!(error instanceof NotExpressible)) throw error;
      left.push({ product: resource.product, key: resource.key, why: error.message });
    }
  }
  files.set("main.tf", head);
  for (const [product, list] of blocks) files.set(`${product}.tf`, list.join("\n"));
  files.set("imports.tf", imports.join("\n"));
  const variables = [...secrets.values()].map((name) =>
    hclBlock("variable", [name], { type: new HclExpression("string"), sensitive: true }),
  );
  if (variables.length > 0) files.set("variables.tf", variables.join("\n"));
  return { files, left };
}

function describe(resource: DescribedResource, context: TerraformContext): TerraformResource[] {
  const described = terraformProducts[resource.product]!;
  if (typeof described === "string") throw new NotExpressible(described);
  const found = described(resource.value as Record<string, HclValue>, context, resource);
  return Array.isArray(found) ? found : [found];
}

/** Products that others refer to, and the type of each. */
const referredTypes: Readonly<Record<string, string>> = {
  zone: "cloudflare_zone",
  kv_namespace: "cloudflare_workers_kv_namespace",
  d1_database: "cloudflare_d1_database",
  queue: "cloudflare_queue",
};
const referenceKey = ({ product, key }: { product: string; key: string }): string => `${product} ${key}`;

function referableLabels(
  { resources }: Document,
  labelFor: (type: string, text: string) => string,
): Map<string, string> {
  const found = new Map<string, string>();
  for (const resource of resources) {
    const type = referredTypes[resource.product];
    if (type !== undefined) found.set(referenceKey(resource), labelFor(type, resource.key));
  }
  return found;
}

function contextOf(
  document: Document,
  { zone }: DescribedResource,
  referable: ReadonlyMap<string, string>,
  files: Map<string, string | Uint8Array>,
  secret: TerraformContext["secret"],
): TerraformContext {
  const idOf = (product: string, key: string): HclExpression => {
    const label = referable.get(referenceKey({ product, key }));
    if (label === undefined) throw new NotExpressible(`the ${product} that it names is not part of the file`);
    return new HclExpression(`${referredTypes[product]!}.${label}.id`);
  };
  return {
    accountId: document.source.account_id,
    zoneId: document.zones.find(({ name }) => name === zone)?.id ?? "",
    zone: zone === undefined ? new HclExpression("null") : idOf("zone", zone),
    idOf,
    file(name, bytes) {
      files.set(`files/${name}`, bytes);
      return new HclExpression(`"\${path.module}/files/${name}"`);
    },
    secret,
  };
}
