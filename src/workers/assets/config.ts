import { z } from "zod";
import { inputErrors } from "../../platform/domain-error.ts";
import { validate } from "../../control/api/validation.ts";
import { parseHeaders, type HeaderRule } from "./rule-files/headers-file.ts";
import { htmlHandlings, type HtmlHandling } from "./html-handling.ts";
import { parseRedirects, type RedirectRule } from "./rule-files/redirects-file.ts";
import type { IgnoredLine } from "./rule-files/rule-lines.ts";

/** How a script version's assets are served; stored with the version as JSON. */
export interface AssetConfig {
  htmlHandling: HtmlHandling;
  notFoundHandling: "none" | "404-page" | "single-page-application";
  /** The path where the site begins, with a slash at both ends. */
  basePath: string;
  /** Whether the script runs before the assets: always, never, or by path with exceptions. */
  runWorkerFirst: boolean | { worker: string[]; assets: string[] };
  headers: HeaderRule[];
  redirects: { fixed: RedirectRule[]; patterns: RedirectRule[] };
}

/** Static assets of a version: the manifest, and how they are served. */
export interface ScriptAssets {
  manifest: string;
  config: AssetConfig;
}

/** The `assets.config` of an upload's metadata. */
export const AssetConfigSchema = z.strictObject({
  html_handling: z.enum(htmlHandlings).default("auto-trailing-slash"),
  not_found_handling: z.enum(["none", "404-page", "single-page-application"]).default("none"),
  base_path: z.string().max(1024).default("/"),
  run_worker_first: z.union([z.boolean(), z.array(z.string()).min(1)]).default(false),
  /** The older name of `run_worker_first: true`. */
  invoke_user_worker_ahead_of_assets: z.boolean().optional(),
  /** The older opposite of `run_worker_first`. */
  serve_directly: z.boolean().optional(),
  _headers: z
    .string()
    .max(256 * 1024)
    .optional(),
  _redirects: z
    .string()
    .max(1024 * 1024)
    .optional(),
});

const routesMax = 100;
const routeLength = 100;

/** Parses `assets.config`. Invalid lines of `_headers` and `_redirects` are reported in `warnings`. */
export function readAssetConfig(input: unknown): { config: AssetConfig; warnings: string[] } {
  const given = validate(AssetConfigSchema, input ?? {}, "metadata/assets/config");
  const warnings: string[] = [];
  const report = (file: string, ignored: readonly IgnoredLine[]): void => {
    for (const { line, why } of ignored) warnings.push(`${file}: line ${line} is ignored, because ${why}`);
  };
  const ignoredHeaders: IgnoredLine[] = [];
  const headers = parseHeaders(given._headers ?? "", ignoredHeaders);
  report("_headers", ignoredHeaders);
  const ignoredRedirects: IgnoredLine[] = [];
  const redirects = parseRedirects(given._redirects ?? "", given.html_handling, ignoredRedirects);
  report("_redirects", ignoredRedirects);
  const isFirst = given.invoke_user_worker_ahead_of_assets ?? given.serve_directly === false;
  return {
    config: {
      htmlHandling: given.html_handling,
      notFoundHandling: given.not_found_handling,
      basePath: basePath(given.base_path),
      runWorkerFirst: Array.isArray(given.run_worker_first)
        ? routes(given.run_worker_first)
        : given.run_worker_first || isFirst,
      headers,
      redirects,
    },
    warnings,
  };
}

const pointer = (field: string): string => `/metadata/assets/config/${field}`;

function basePath(text: string): string {
  const path = `/${text}/`.replace(/\/+/g, "/");
  if (/[?#\\\s]|\/\.{1,2}\//.test(path))
    throw inputErrors.invalid(
      `Expected a plain path for base_path but received ${JSON.stringify(text)}`,
      pointer("base_path"),
    );
  return path;
}

function routes(rules: readonly string[]): { worker: string[]; assets: string[] } {
  const fail = (message: string): never => {
    throw inputErrors.invalid(message, pointer("run_worker_first"));
  };
  if (rules.length > routesMax) fail(`Expected at most ${routesMax} rules in run_worker_first`);
  if (new Set(rules).size < rules.length) fail("Expected each rule of run_worker_first once");
  for (const rule of rules) {
    if (!/^!?\//.test(rule) || rule.length > routeLength)
      fail(
        `Expected rules of run_worker_first to begin with "/" or "!/", with at most ${routeLength} characters, but received ${JSON.stringify(rule)}`,
      );
  }
  const assets = rules.filter((rule) => rule.startsWith("!")).map((rule) => rule.slice(1));
  const worker = rules.filter((rule) => !rule.startsWith("!"));
  if (worker.length === 0) fail("Expected at least one rule of run_worker_first without !");
  return { worker, assets };
}
