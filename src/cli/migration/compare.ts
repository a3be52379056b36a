import { isDeepStrictEqual } from "node:util";
import { clock } from "../../platform/timers/clock.ts";
import type { Document } from "./document.ts";
import type { Product, DescribedResource } from "./product.ts";
import { products } from "./products.ts";

export interface FieldDifference {
  field: string;
  a: unknown;
  b: unknown;
}
export interface ResourceDifference {
  product: string;
  zone?: string | undefined;
  key: string;
  kind: "only in A" | "only in B" | "different";
  fields?: FieldDifference[];
}

const byName = new Map(products.map((product) => [product.name, product]));
const fieldsMax = 20;

/** The differences of two documents, in the products and zones that both describe. */
export function compareDocuments(a: Document, b: Document): ResourceDifference[] {
  const shared = a.include.filter((group) => b.include.includes(group));
  return products
    .filter(({ group }) => shared.includes(group))
    .flatMap((product) => {
      const of = (document: Document): DescribedResource[] =>
        document.resources.filter((resource) => resource.product === product.name);
      return compareResources(product, of(a), of(b));
    });
}

/** The differences of two lists of one product's resources. */
export function compareResources(
  product: Product,
  a: readonly DescribedResource[],
  b: readonly DescribedResource[],
  nowMs = clock.now(),
): ResourceDifference[] {
  const keyed = (list: readonly DescribedResource[]): Map<string, DescribedResource> =>
    new Map(
      list
        .filter(({ value }) => product.isOver?.(value, nowMs) !== true)
        .map((resource) => [`${resource.zone ?? ""} ${resource.key}`, resource]),
    );
  const [inA, inB] = [keyed(a), keyed(b)];
  const differences: ResourceDifference[] = [];
  for (const [key, resource] of inA) {
    const other = inB.get(key);
    if (other === undefined) differences.push(differenceOf(resource, "only in A"));
    else {
      const fields = fieldDifferences(resource, other);
      if (fields.length > 0) differences.push({ ...differenceOf(resource, "different"), fields });
    }
  }
  for (const [key, resource] of inB) if (!inA.has(key)) differences.push(differenceOf(resource, "only in B"));
  return differences;
}

/** The fields in which two resources with one key differ. */
export function fieldDifferences(a: DescribedResource, b: DescribedResource): FieldDifference[] {
  const product = byName.get(a.product)!;
  const part = (value: Record<string, unknown>): unknown => plain(product.comparable?.(value) ?? value);
  const found: FieldDifference[] = [];
  collect("", part(a.value), part(b.value), found);
  return found;
}

const differenceOf = (
  { product, zone, key }: DescribedResource,
  kind: ResourceDifference["kind"],
): ResourceDifference => ({
  product,
  ...(zone === undefined ? {} : { zone }),
  key,
  kind,
});

/** The value as JSON shows it: without undefined fields. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null)) as unknown;

function collect(field: string, a: unknown, b: unknown, found: FieldDifference[]): void {
  if (found.length >= fieldsMax || isDeepStrictEqual(a, b)) return;
  const bothObjects = isObject(a) && isObject(b) && Array.isArray(a) === Array.isArray(b);
  if (!bothObjects) {
    found.push({ field, a, b });
    return;
  }
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const own = (value: Record<string, unknown>): unknown =>
      Object.hasOwn(value, name) ? value[name] : undefined;
    collect(field === "" ? name : `${field}.${name}`, own(a), own(b), found);
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;
