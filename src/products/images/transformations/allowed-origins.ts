/**
 * Whether pictures of a host may be transformed for a zone. `value` is the setting
 * `transformations_allowed_origins`: comma-separated hosts, each with an optional path prefix; `*.host` is
 * the host and its subdomains; `*` is every host.
 */
export function isAllowedOrigin(source: URL, value: string): boolean {
  return value.split(",").some((each) => {
    const entry = each.trim();
    const slash = entry.indexOf("/");
    const host = slash < 0 ? entry : entry.slice(0, slash);
    const path = slash < 0 ? "/" : entry.slice(slash);
    return entry !== "" && isOfHost(source.hostname, host) && isBelow(source.pathname, path);
  });
}

function isOfHost(hostname: string, pattern: string): boolean {
  if (pattern === "*") return true;
  if (!pattern.startsWith("*.")) return hostname === pattern.toLowerCase();
  const root = pattern.slice(2).toLowerCase();
  return hostname === root || hostname.endsWith(`.${root}`);
}

/** Compares whole segments: `/themes` is not a prefix of `/themes-old`. */
const isBelow = (pathname: string, prefix: string): boolean =>
  prefix.endsWith("/")
    ? pathname.startsWith(prefix)
    : pathname === prefix || pathname.startsWith(`${prefix}/`);
