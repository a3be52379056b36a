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
 * A text that orders declared paths. Of two paths that match the same request, the more specific one comes first:
 * the one with fixed text at the first segment that differs. A segment ends before all, a parameter follows all.
 */
export const orderOfPath = (path: string): string =>
  path.replaceAll(/\{[^/]*/g, "\uffff").replaceAll("/", "\0");
