import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { MigrationError, printable } from "./failure.ts";
import { groups, type Group, type LeftOut, type DescribedResource } from "./product.ts";
import { products } from "./products.ts";

/** Must be incremented when a file of an older version would be misread. */
export const documentVersion = 1;
const bytesMax = 512 * 1024 * 1024;
/** Characters of a document, with room below the longest string of V8. */
export const documentCharsMax = 400 * 1024 * 1024;

const ResourceSchema = z.strictObject({
  product: z.enum(products.map(({ name }) => name)),
  zone: z.string().max(253).optional(),
  key: z.string().max(70_000),
  id: z.string().max(1100).optional(),
  value: z.record(z.string(), z.unknown()),
});
const LeftOutSchema = z.strictObject({
  product: z.string().max(100),
  zone: z.string().max(253).optional(),
  names: z.array(z.string()).max(100),
  count: z.int().min(1),
  why: z.string().max(1000),
});
/** The file of `selvedge import`. Each `value` has the form of its product. */
export const DocumentSchema = z.strictObject({
  selvedge_import: z.literal(documentVersion),
  /** Where the resources come from. */
  source: z.strictObject({ base_url: z.string().max(2000), account_id: z.string().max(64) }),
  zones: z.array(z.strictObject({ id: z.string().max(64), name: z.string().max(253) })).max(100_000),
  include: z.array(z.enum([...groups])).max(groups.length),
  resources: z.array(ResourceSchema).max(1_000_000),
  left_out: z.array(LeftOutSchema).max(100_000),
});
export interface Document {
  selvedge_import: typeof documentVersion;
  source: { base_url: string; account_id: string };
  zones: { id: string; name: string }[];
  include: Group[];
  resources: DescribedResource[];
  left_out: LeftOut[];
}

/** Reads a document, and checks every resource against the form of its product. Throws MigrationError. */
export function readDocument(file: string): Document {
  if (!existsSync(file)) throw new MigrationError(`There is no file ${file}`);
  if (statSync(file).size > bytesMax) throw new MigrationError(`${file} has more than ${bytesMax} bytes`);
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new MigrationError(`${file} is not valid JSON: ${printable((error as Error).message)}`);
  }
  const version = (content as { selvedge_import?: unknown } | null)?.selvedge_import;
  if (version !== documentVersion)
    throw new MigrationError(
      `Expected a file of selvedge import with "selvedge_import": ${documentVersion}, but ${file} has ${printable(String(version))}`,
    );
  const document: Document = checked(DocumentSchema, content, file);
  const byName = new Map(products.map((product) => [product.name, product]));
  document.resources.forEach((resource, index) => {
    const known = byName.get(resource.product)!;
    const at = `${file}: resources.${index}`;
    resource.value = checked(known.schema.strict(), resource.value, `${at}.value`);
    if (known.key(resource.value) !== resource.key)
      throw new MigrationError(`${at}: expected the key ${printable(known.key(resource.value))}`);
    if ((known.scope === "zone") !== (resource.zone !== undefined))
      throw new MigrationError(`${at}: expected ${known.scope === "zone" ? "a zone" : "no zone"}`);
  });
  return document;
}

/** Writes a document. The file appears whole, and only its owner can read it. */
export function writeDocument(file: string, document: Document): void {
  const text = documentText(document);
  if (text.length > documentCharsMax)
    throw new MigrationError(
      `The document would have more than ${documentCharsMax} characters: choose fewer groups with --include`,
    );
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** A line for each resource, so that a version control system shows changes. */
function documentText({ resources, left_out, ...head }: Document): string {
  const lines = (items: readonly object[]): string =>
    items.length === 0 ? "[]" : `[\n${items.map((item) => `    ${JSON.stringify(item)}`).join(",\n")}\n  ]`;
  const first = JSON.stringify(head, null, 2).replace(/\n\}$/, "");
  return `${first},\n  "resources": ${lines(resources)},\n  "left_out": ${lines(left_out)}\n}\n`;
}

function checked<Output>(schema: z.ZodType<Output>, value: unknown, where: string): Output {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new MigrationError(
    `${where}${issue!.path.map((part) => `.${String(part)}`).join("")}: ${printable(issue!.message)}`,
  );
}
