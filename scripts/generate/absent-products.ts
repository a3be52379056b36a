import { globSync, readFileSync } from "node:fs";
import { dirname, relative } from "node:path";
import { canonicalPath } from "../../src/control/api/server/paths.ts";
import { operations } from "../../src/capabilities.ts";

/**
 * src/control/api/server/absent-products.json maps paths of the public API that Selvedge does not serve to their products. It is
 * made from the paths that the official client calls. A path covers all paths below it; "*" is any one segment.
 */
const resources = "node_modules/cloudflare/resources";
const roots = new Set([
  "accounts",
  "zones",
  "user",
  "organizations",
  "radar",
  "tenants",
  "certificates",
  "pages",
]);
/** Paths that only other clients call. */
const others: Readonly<Record<string, string>> = {
  "accounts/*/cloudchamber": "Containers",
  "zones/*/analytics": "Zone Analytics",
};
/** Products whose name differs from their folder in the client. */
const names: Readonly<Record<string, string>> = {
  accounts: "Account",
  acm: "Advanced Certificate Manager",
  addressing: "Address Maps",
  ai: "Workers AI",
  aisearch: "AI Search",
  calls: "Realtime",
  dls: "Data Localization",
  intel: "Threat Intelligence",
  "ddos-protection": "DDoS Protection",
  kv: "Key-value storage",
  moq: "Media over QUIC",
  rum: "Web Analytics",
  waf: "WAF",
  zones: "Zone",
};
/** Selvedge serves single paths of these products (an empty list, a refusal), but not the products. */
const absent: ReadonlySet<string> = new Set(["durable-objects", "cache"]);
const initials =
  /^(ai|api|ca|cni|csam|csrs|d1|dcv|ddos|dns|gre|iam|ip|ips|kv|llm|mtls|r2|ssl|ssh|tls|ua|url|vpc|waf)$/;

interface Node {
  children: Map<string, Node>;
  /** Folders of the client's `resources` that call this path. */
  resources: Set<string>;
  isOurs: boolean;
}
const newNode = (): Node => ({ children: new Map(), resources: new Set(), isOurs: false });

export function absentProducts(): string {
  const root = newNode();
  for (const { path } of operations) at(root, path).isOurs = true;
  const here = new Set<string>();
  for (const file of globSync(`${resources}/**/*.mjs`)) {
    const resource = relative(resources, file).replace(/\.mjs$/, "");
    for (const path of pathsOf(readFileSync(file, "utf8"))) {
      const node = at(root, canonicalPath(path));
      node.resources.add(resource);
      const top = resource.split("/")[0]!;
      if (node.isOurs && !absent.has(top)) here.add(top);
    }
  }
  const found: Record<string, string> = { ...others };
  for (const [segment, node] of root.children) if (roots.has(segment)) collect(node, [segment], here, found);
  const sorted = Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)));
  return `${JSON.stringify(sorted, null, 2)}\n`;
}

/** The paths that a file of the client calls. A parameter as scope stands for accounts and zones. */
function pathsOf(code: string): string[] {
  const written = [...code.matchAll(/path\s*`(\/[^`]+)`|'(\/[a-z][^'\s]*)'/g)].map(([, a, b]) => (a ?? b)!);
  return written
    .map((path) => path.replaceAll(/\$\{[^}]+\}/g, "{}"))
    .flatMap((path) =>
      path.startsWith("/{}/{}/") ? ["accounts", "zones"].map((scope) => path.replace("{}", scope)) : [path],
    );
}

function at(root: Node, path: string): Node {
  let node = root;
  for (const segment of path.split("/").slice(1)) {
    const key = segment.includes("{") ? "*" : segment;
    let child = node.children.get(key);
    if (child === undefined) node.children.set(key, (child = newNode()));
    node = child;
  }
  return node;
}

/** Collects the shortest paths below which Selvedge serves nothing and all paths belong to one product. */
function collect(node: Node, path: string[], here: ReadonlySet<string>, found: Record<string, string>): void {
  const below = [...all(node)];
  const called = [...new Set(below.flatMap((each) => [...each.resources]))];
  const product =
    path.at(-1) === "*" || below.some(({ isOurs }) => isOurs) ? undefined : productOf(called, here);
  if (product !== undefined) found[path.join("/")] = product;
  else for (const [segment, child] of node.children) collect(child, [...path, segment], here, found);
}

function* all(node: Node): Generator<Node> {
  yield node;
  for (const child of node.children.values()) yield* all(child);
}

/** The product of these resources. If Selvedge serves part of it, the name includes the missing part. */
function productOf(called: readonly string[], here: ReadonlySet<string>): string | undefined {
  const tops = new Set(called.map((each) => each.split("/")[0]!));
  const [top] = tops;
  if (top === undefined || tops.size > 1) return undefined;
  if (!here.has(top)) return titleOf(top);
  let common = called[0]!;
  while (!called.every((each) => each === common || each.startsWith(`${common}/`))) common = dirname(common);
  const parts = common.split("/").filter((part, index, list) => part !== list[index - 1]);
  return parts.length < 2 ? undefined : [titleOf(top), ...parts.slice(1).map(wordsOf)].join(" ");
}

const titleOf = (folder: string): string =>
  names[folder] ??
  folder
    .split("-")
    .map((word) => (initials.test(word) ? spelled(word) : capital(word)))
    .join(" ");
const wordsOf = (folder: string): string =>
  folder
    .split("-")
    .map((word) => (initials.test(word) ? spelled(word) : word))
    .join(" ");
const spelled = (word: string): string =>
  word === "mtls" ? "mTLS" : word === "csrs" ? "CSRs" : word === "ips" ? "IPs" : word.toUpperCase();
const capital = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1);
