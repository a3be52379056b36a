import { apiErrors, type ApiError } from "../errors.ts";
import products from "./absent-products.json" with { type: "json" };

interface PathNode {
  children: Map<string, PathNode>;
  product?: string;
}

const root: PathNode = { children: new Map() };
for (const [path, product] of Object.entries(products)) {
  let node = root;
  for (const segment of path.split("/")) {
    let child = node.children.get(segment);
    if (child === undefined) node.children.set(segment, (child = { children: new Map() }));
    node = child;
  }
  node.product = product;
}

/** The refusal of analytics queries, which names the local sources of the same data. */
export const absentAnalytics = (): ApiError =>
  apiErrors.absentProduct(
    "GraphQL Analytics",
    "Read its metrics (--metrics-listen), its access log (--access-log), and the audit log (/accounts/{id}/logs/audit)",
  );

/**
 * The Cloudflare product that a canonical path belongs to, if this platform does not have it; else undefined.
 */
export function absentProduct(path: string): string | undefined {
  let node: PathNode | undefined = root;
  for (const segment of path.split("/").slice(1)) {
    node = node.children.get(segment) ?? node.children.get("*");
    if (node === undefined) return undefined;
    if (node.product !== undefined) return node.product;
  }
  return undefined;
}
