import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ownerToken, startTestServer } from "../helpers/server.ts";
import { startBrowser, type Seen } from "./starters/browser.ts";
import { projects, type Project } from "./starters/projects.ts";
import { keep, limitsMs, make, Wrangler } from "./starters/workshop.ts";

/*
 * Public starters, each made by its creator's unmodified program from npm, built, deployed with the wrangler that it
 * brings, and looked at in Chromium through the edge.
 *
 *   node test/proofs/starters.ts [--only NAME]…
 *
 * Projects and Chromium are kept in node_modules/.cache/selvedge-clients: the second run makes nothing again.
 * A starter that cannot be made or built here is skipped with the cause, such as a template on GitHub without a way to
 * it; the creators' own caches of templates are used as always. A deployment that is refused, or a page that is not as
 * it should be, fails the proof.
 */
interface Row {
  starter: string;
  "made with": string;
  deployed: string;
  seen: string;
  result: string;
}

const { values } = parseArgs({ options: { only: { type: "string", multiple: true } } });
const only = values.only?.flatMap((each) => each.split(",")) ?? Object.keys(projects);
const unknown = only.filter((name) => projects[name] === undefined);
if (unknown.length > 0)
  throw new Error(`Expected one of ${Object.keys(projects).join(", ")} but received ${unknown.join(", ")}`);

const root = mkdtempSync(join(tmpdir(), "selvedge-starters-"));
const browser = await startBrowser();
if ("missing" in browser) process.stderr.write(`nothing is looked at: ${browser.missing}\n`);
const server = await startTestServer({ privateNetworks: "all", edgeTlsListen: "127.0.0.1:0" });
const { subdomain } = (await server.call("GET", `/accounts/${server.ready.account_id}/workers/subdomain`))
  .body.result as { subdomain: string };

const rows: Row[] = [];
for (const name of only) {
  const begunMs = Date.now();
  const row = await attempt(name, projects[name]!);
  rows.push(row);
  const seconds = Math.round((Date.now() - begunMs) / 1000);
  process.stderr.write(`${name}: ${row.result} (${seconds} s)\n`);
}
if (!("missing" in browser)) await browser.close();
await server.close(1000);
rmSync(root, { recursive: true, force: true });

print(rows);
const count = (result: string): number => rows.filter((row) => row.result.startsWith(result)).length;
process.stdout.write(
  `\n${count("works")} work, ${count("fails")} fail, ${count("skipped")} skipped; ` +
    `${"missing" in browser ? `nothing was looked at: ${browser.missing}` : `Chromium ${browser.version}`}\n`,
);
if (count("fails") > 0) process.exitCode = 1;

async function attempt(name: string, project: Project): Promise<Row> {
  const row: Row = { starter: name, "made with": project.create[0], deployed: "", seen: "", result: "" };
  let folder: string;
  try {
    folder = await make(root, name, project);
  } catch (error) {
    rmSync(join(root, name), { recursive: true, force: true });
    return { ...row, result: `skipped: ${(error as Error).message}` };
  }
  try {
    const wrangler = new Wrangler(folder, {
      CLOUDFLARE_API_BASE_URL: server.ready.api,
      CLOUDFLARE_API_TOKEN: ownerToken,
      CLOUDFLARE_ACCOUNT_ID: server.ready.account_id,
    });
    await project.provide?.(wrangler, folder, server);
    const script = await wrangler.deploy();
    row.deployed = `wrangler ${wrangler.version}`;
    const { protocol, port } = new URL(
      project.isSecure === true ? server.ready.edge_tls! : server.ready.edge,
    );
    const origin = `${protocol}//${script}.${subdomain}.workers.localhost:${port}`;
    if ("missing" in browser) {
      row.seen = "not looked at";
      return { ...row, result: "works as far as deployed" };
    }
    const seen = await within(
      limitsMs.look,
      browser.visit(origin, async (page) => project.look(page, server)),
    );
    row.seen = describe(seen);
    if (seen.errors.length > 0) throw new Error(`errors in the console: ${seen.errors.join("; ")}`);
    return { ...row, result: "works" };
  } catch (error) {
    return { ...row, result: `fails: ${(error as Error).message}` };
  } finally {
    keep(folder, name, project);
  }
}

function describe({ title, texts, errors }: Seen): string {
  const quoted = [...new Set(texts)].map((each) => JSON.stringify(each)).join(", ");
  return `title ${JSON.stringify(title)}; ${quoted}; ${errors.length} console errors`;
}

async function within<T>(limitMs: number, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`not seen after ${limitMs / 1000} s`)), limitMs);
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}

function print(table: readonly Row[]): void {
  const columns = ["starter", "made with", "deployed", "seen", "result"] as const;
  const cells = table.map((row) =>
    columns.map((column) => row[column].replaceAll(/\s+/g, " ").replaceAll("|", "\\|")),
  );
  const lines = [[...columns], columns.map(() => "---"), ...cells];
  for (const line of lines) process.stdout.write(`| ${line.join(" | ")} |\n`);
}
