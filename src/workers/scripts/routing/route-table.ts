/** A parsed route pattern such as `https://*.example.com/shop/*`. */
export interface RoutePattern {
  /** Undefined for both schemes. */
  scheme: "http" | "https" | undefined;
  /** Without its wildcard. */
  host: string;
  /** `*example.com` matches the name and its subdomains, `*.example.com` only subdomains. */
  isHostWild: boolean;
  /** Without its wildcard. */
  path: string;
  isPathWild: boolean;
}

const hostPattern = /^\*?[a-z0-9_.-]+$/;

/** Parses a pattern. Returns a text for the user if it is invalid. */
export function parsePattern(text: string): RoutePattern | string {
  const [, scheme, rest = ""] = /^(?:(https?):\/\/)?(.*)$/i.exec(text) ?? [];
  if (/[?#\s\p{Cc}]/u.test(rest)) return "a pattern without a query, a fragment and spaces";
  const slash = rest.indexOf("/");
  const host = (slash < 0 ? rest : rest.slice(0, slash)).toLowerCase();
  const path = slash < 0 ? "/" : rest.slice(slash);
  if (!hostPattern.test(host)) return "a host name, which may begin with *";
  const wildAt = path.indexOf("*");
  if (wildAt >= 0 && wildAt !== path.length - 1) return "a * in the path only at its end";
  return {
    scheme: scheme?.toLowerCase() as "http" | "https" | undefined,
    host: host.startsWith("*") ? host.slice(1) : host,
    isHostWild: host.startsWith("*"),
    path: wildAt < 0 ? path : path.slice(0, -1),
    isPathWild: wildAt >= 0,
  };
}

/** Whether all hosts that a pattern matches belong to a zone. */
export const isWithin = ({ host }: RoutePattern, zoneName: string): boolean =>
  host === zoneName || host.endsWith(`.${zoneName}`);

/** The order in which routes are tried, most specific first: by host, then by path. */
export function bySpecificity(a: RoutePattern, b: RoutePattern): number {
  return (
    Number(a.isHostWild) - Number(b.isHostWild) ||
    b.host.length - a.host.length ||
    b.path.length - a.path.length ||
    Number(a.isPathWild) - Number(b.isPathWild) ||
    Number(a.scheme === undefined) - Number(b.scheme === undefined)
  );
}

type Compiled<R> = RoutePattern & { route: R };

/** The routes of a zone, most specific first. */
export class RouteTable<R> {
  readonly #byHost = new Map<string, Compiled<R>[]>();
  readonly #wild: Compiled<R>[] = [];

  constructor(routes: readonly { pattern: RoutePattern; route: R }[]) {
    const sorted = routes.map(({ pattern, route }) => ({ ...pattern, route })).sort(bySpecificity);
    for (const compiled of sorted) {
      if (compiled.isHostWild) this.#wild.push(compiled);
      else {
        const siblings = this.#byHost.get(compiled.host);
        if (siblings === undefined) this.#byHost.set(compiled.host, [compiled]);
        else siblings.push(compiled);
      }
    }
  }

  /** `path` includes the query, because a pattern covers the whole rest of the URL. */
  match(scheme: "http" | "https", host: string, path: string): R | undefined {
    const exact = this.#byHost.get(host)?.find((each) => takes(each, scheme, path));
    return (exact ?? this.#wild.find((each) => host.endsWith(each.host) && takes(each, scheme, path)))?.route;
  }
}

const takes = (pattern: RoutePattern, scheme: string, path: string): boolean =>
  (pattern.scheme === undefined || pattern.scheme === scheme) &&
  (pattern.isPathWild ? path.startsWith(pattern.path) : path === pattern.path);
