const base = "/client/v4";

/**
 * One spelling for each path: without the base, without a trailing slash, and with the specification's `edge`
 * where the public API writes `argo` (smart routing) or `workers` (dispatch, assets).
 */
export function canonicalPath(path: string): string {
  let canonical = path.startsWith(`${base}/`) ? path.slice(base.length) : path;
  if (canonical.length > 1 && canonical.endsWith("/")) canonical = canonical.slice(0, -1);
  if (canonical.includes("/argo/")) return canonical.replace(/^(\/zones\/[^/]+)\/argo\//, "$1/edge/");
  if (canonical.includes("/workers/")) {
    return canonical.replace(
      /^(\/accounts\/[^/]+)\/workers\/(dispatch|assets\/upload)(?=\/|$)/,
      "$1/edge/$2",
    );
  }
  return canonical;
}

/** "/zones/{zone_id}" in the router's notation, "/zones/:zone_id". */
export const routePattern = (path: string): string => path.replace(/\{(\w+)\}/g, ":$1");

export const isParameter = (segment: string): boolean => segment.startsWith("{");

/**
 * A total order of declared paths. Of two that match the same path, the more specific one comes first: the
 * one with fixed text at the first segment that differs.
 */
export function comparePaths(a: string, b: string): number {
  const [left, right] = [a.split("/"), b.split("/")];
  for (const [i, segment] of left.entries()) {
    const other = right[i];
    if (other === undefined) return 1;
    const parameters = Number(isParameter(segment)) - Number(isParameter(other));
    if (parameters !== 0) return parameters;
    if (!isParameter(segment) && segment !== other) return segment < other ? -1 : 1;
  }
  return left.length - right.length;
}
