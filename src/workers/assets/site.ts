import type { AssetFile, ManifestEntry } from "./asset.ts";
import type { AssetConfig } from "./config.ts";
import { resolveHtml } from "./html-handling.ts";
import { compilePattern, fillPlaceholders, type PathPattern } from "./rule-files/path-pattern.ts";

/** Sets a header, or drops it if there is no value. */
export interface HeaderChange {
  name: string;
  value: string | undefined;
}

export interface SiteFile {
  file: AssetFile;
  /** "" for content without a type. */
  contentType: string;
}

/** The answer for a path, independent of the request's method and headers. */
export type SitePlan = { changes: HeaderChange[] } & (
  | ({ kind: "asset"; status: 200 | 404; isFallback: boolean } & SiteFile)
  /** A location without a query of its own gets the request's. */
  | { kind: "redirect"; status: number; location: string; query: string; fragment: string }
  | { kind: "none" }
);
type Outcome = SitePlan extends infer P ? (P extends SitePlan ? Omit<P, "changes"> : never) : never;

const plansMax = 10_000;
/** Maximum number of plans of paths without a file, because visitors can request any number of such paths. */
const otherPlansMax = 100;
const otherKeyLengthMax = 256;

/** One deployed set of assets: its paths, its rules, and a plan for each path. */
export class Site {
  readonly config: AssetConfig;
  readonly #files = new Map<string, SiteFile>();
  readonly #headerRules: { pattern: PathPattern; changes: HeaderChange[] }[];
  readonly #redirects: ReadonlyMap<string, { to: string; status: number }>;
  readonly #redirectPatterns: { pattern: PathPattern; to: string; status: number }[];
  readonly #isHostSensitive: boolean;
  /** Plans by requested path: of paths with a file of their own, and of others. */
  readonly #plans = new Map<string, SitePlan>();
  readonly #otherPlans = new Map<string, SitePlan>();

  constructor(
    config: AssetConfig,
    entries: readonly ManifestEntry[],
    files: ReadonlyMap<string, AssetFile>,
    contentTypeOf: (path: string) => string,
  ) {
    this.config = config;
    for (const { path, hash } of entries) {
      const file = files.get(hash);
      if (file === undefined) throw new Error(`the content ${hash} of ${path} is missing`);
      this.#files.set(path, { file, contentType: withCharset(file.contentType ?? contentTypeOf(path)) });
    }
    this.#headerRules = config.headers.flatMap(({ path, set, unset }) => {
      const pattern = compilePattern(path);
      const changes = [
        ...unset.map((name) => ({ name, value: undefined })),
        ...set.map(([name, value]) => ({ name, value })),
      ];
      return pattern === undefined ? [] : [{ pattern, changes }];
    });
    this.#redirects = new Map(config.redirects.fixed.map((rule) => [rule.from, rule]));
    this.#redirectPatterns = config.redirects.patterns.flatMap(({ from, to, status }) => {
      const pattern = compilePattern(from);
      return pattern === undefined ? [] : [{ pattern, to, status }];
    });
    this.#isHostSensitive = this.#headerRules.some(({ pattern }) => pattern.hasHost);
  }

  /** `path` as in the request, without query; `host` without a port. */
  plan(host: string, path: string): SitePlan {
    const key = this.#isHostSensitive ? `${host}${path}` : path;
    const known = this.#plans.get(key) ?? this.#otherPlans.get(key);
    if (known !== undefined) return known;
    const pathname = normalPath(path);
    const plan = { ...this.#resolve(pathname), changes: this.#changes(host, pathname) };
    if (plan.kind === "asset" && !plan.isFallback) remember(this.#plans, plansMax, key, plan);
    else if (key.length <= otherKeyLengthMax) remember(this.#otherPlans, otherPlansMax, key, plan);
    return plan;
  }

  get fileCount(): number {
    return this.#files.size;
  }

  /**
   * Whether the script answers: by the rules of `run_worker_first`, or because no asset matches.
   * `isNavigation`: a browser opens a page. Only such requests get a fallback page, unless rules have already
   * chosen between script and assets.
   */
  isForScript(host: string, path: string, isNavigation: boolean): boolean {
    const { runWorkerFirst } = this.config;
    if (runWorkerFirst === true) return true;
    if (runWorkerFirst !== false) {
      const pathname = normalPath(path);
      if (runWorkerFirst.assets.some((rule) => matchesGlob(rule, pathname))) return false;
      if (runWorkerFirst.worker.some((rule) => matchesGlob(rule, pathname))) return true;
    }
    const plan = this.plan(host, path);
    if (plan.kind === "none") return true;
    return plan.kind === "asset" && plan.isFallback && runWorkerFirst === false && !isNavigation;
  }

  #resolve(pathname: string): Outcome {
    let target = pathname;
    const rule = this.#redirect(pathname);
    if (rule !== undefined) {
      if (rule.status !== 200) return redirectTo(rule.status, rule.to);
      target = normalPath(rule.to);
    }
    const { basePath, htmlHandling } = this.config;
    const path = decodePath(target);
    const base = basePath.slice(0, -1);
    if (path !== base && !path.startsWith(basePath)) return { kind: "none" };
    const atRoot = rule === undefined ? this.#baseRoot(path) : undefined;
    if (atRoot !== undefined) return redirectTo(307, encodePath(atRoot));

    const inSite = path.slice(base.length) || "/";
    const found =
      resolveHtml(htmlHandling, inSite, (file) => this.#files.get(file)?.file.hash) ?? this.#fallback(inSite);
    if (found === undefined) return { kind: "none" };
    if ("redirect" in found) return redirectTo(307, encodePath(base + found.redirect));
    const canonical = encodePath(path);
    if (canonical !== target) return redirectTo(307, canonical);
    return "status" in found
      ? { kind: "asset", status: found.status, isFallback: true, ...this.#files.get(found.fallback)! }
      : { kind: "asset", status: 200, isFallback: false, ...this.#files.get(found.file)! };
  }

  #redirect(pathname: string): { to: string; status: number } | undefined {
    const fixed = this.#redirects.get(pathname);
    if (fixed !== undefined) return fixed;
    for (const { pattern, to, status } of this.#redirectPatterns) {
      const values = pattern.match("", pathname);
      if (values === undefined) continue;
      const target = fillPlaceholders(to, values);
      if (to.startsWith("https://")) return { to: target, status };
      // The value of a placeholder must not turn a path into the URL of another host.
      const end = target.search(/[?#]/);
      const path = end < 0 ? target : target.slice(0, end);
      return { to: path.replace(/[/\\]+/g, "/") + target.slice(path.length), status };
    }
    return undefined;
  }

  /** The root under a base path has one spelling, with or without its slash. */
  #baseRoot(path: string): string | undefined {
    const { basePath, htmlHandling } = this.config;
    if (basePath === "/" || htmlHandling === "none" || !this.#files.has("/index.html")) return undefined;
    const [other, canonical] =
      htmlHandling === "drop-trailing-slash"
        ? [basePath, basePath.slice(0, -1)]
        : [basePath.slice(0, -1), basePath];
    return path === other ? canonical : undefined;
  }

  #fallback(path: string): { fallback: string; status: 200 | 404 } | undefined {
    switch (this.config.notFoundHandling) {
      case "single-page-application":
        return this.#files.has("/index.html") ? { fallback: "/index.html", status: 200 } : undefined;
      case "404-page":
        for (let folder = path; folder !== "";) {
          folder = folder.slice(0, folder.lastIndexOf("/"));
          if (this.#files.has(`${folder}/404.html`)) return { fallback: `${folder}/404.html`, status: 404 };
        }
        return undefined;
      case "none":
        return undefined;
    }
  }

  #changes(host: string, pathname: string): HeaderChange[] {
    return this.#headerRules.flatMap(({ pattern, changes }) => {
      const values = pattern.match(host, pathname);
      if (values === undefined) return [];
      return changes.map(({ name, value }) => ({
        name,
        value: value === undefined ? undefined : fillPlaceholders(value, values),
      }));
    });
  }
}

function remember(plans: Map<string, SitePlan>, countMax: number, key: string, plan: SitePlan): void {
  if (plans.size >= countMax) plans.clear();
  plans.set(key, plan);
}

function redirectTo(status: number, to: string): Outcome {
  const isPath = to.startsWith("/");
  const url = URL.parse(isPath ? `http://site${to}` : to);
  // The value of a placeholder may be invalid in a host.
  if (url === null) return { kind: "none" };
  const { origin, pathname, search, hash } = url;
  return {
    kind: "redirect",
    status,
    location: isPath ? pathname : `${origin}${pathname}`,
    query: search,
    fragment: hash,
  };
}

const normalPath = (path: string): string => new URL(`http://site${path}`).pathname;

function decodePath(pathname: string): string {
  const decoded = pathname.split("/").map((segment) => {
    try {
      return decodeURIComponent(segment);
    } catch {
      return segment;
    }
  });
  return decoded.join("/").replace(/\/+/g, "/");
}
const encodePath = (path: string): string =>
  path
    .split("/")
    .map((segment) => encodeURIComponent(segment.toWellFormed()))
    .join("/");

const withCharset = (type: string): string =>
  type.startsWith("text/") && !/;\s*charset=/i.test(type) ? `${type}; charset=utf-8` : type;

/** Matches the parts between stars greedily, without a regular expression that could be slow. */
function matchesGlob(glob: string, path: string): boolean {
  const [head = "", ...rest] = glob.split("*");
  if (rest.length === 0) return glob === path;
  if (!path.startsWith(head)) return false;
  const tail = rest.pop()!;
  let at = head.length;
  for (const part of rest) {
    const next = path.indexOf(part, at);
    if (next < 0) return false;
    at = next + part.length;
  }
  return path.length - tail.length >= at && path.endsWith(tail);
}
