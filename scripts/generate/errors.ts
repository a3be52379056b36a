import { apiErrors, type ApiError } from "../../src/api/errors.ts";
import { assetErrors } from "../../src/assets/asset.ts";
import { namespaceErrors } from "../../src/dispatch/namespaces.ts";
import { dnsErrors } from "../../src/dns/errors.ts";
import { visitorErrors, type VisitorError } from "../../src/edge/errors.ts";
import { kvErrors } from "../../src/kv/kv.ts";
import { dnssecErrors } from "../../src/name-server/dnssec.ts";
import { transferErrors } from "../../src/name-server/transfers/errors.ts";
import { queueErrors } from "../../src/queues/queue.ts";
import { rulesetErrors } from "../../src/rulesets/ruleset.ts";
import { scheduleErrors } from "../../src/schedules/schedule.ts";
import { domainErrors } from "../../src/scripts/domains.ts";
import { routeErrors } from "../../src/scripts/routes.ts";
import { scriptErrors } from "../../src/scripts/script.ts";
import { subdomainErrors } from "../../src/scripts/subdomains.ts";
import { snippetErrors } from "../../src/snippets/snippet.ts";
import { smartRoutingErrors } from "../../src/smart-routing/errors.ts";
import { tailErrors } from "../../src/tail/tails.ts";
import { certificateErrors } from "../../src/tls/certificate.ts";
import { packErrors } from "../../src/tls/packs.ts";
import { workflowErrors } from "../../src/workflows/workflow.ts";
import { zoneErrors } from "../../src/zones/zone.ts";

type Factories = Record<string, (...details: never[]) => ApiError | VisitorError>;
const tables: [title: string, errors: Factories][] = [
  ["Every operation", apiErrors],
  ["Zones", zoneErrors],
  ["DNS records", dnsErrors],
  ["DNSSEC", dnssecErrors],
  ["Zone transfers", transferErrors],
  ["Rulesets", rulesetErrors],
  ["Smart routing", smartRoutingErrors],
  ["Certificates", certificateErrors],
  ["Certificate packs", packErrors],
  ["Snippets", snippetErrors],
  ["Scripts", scriptErrors],
  ["Routes to scripts", routeErrors],
  ["Domains of scripts", domainErrors],
  ["Subdomains of accounts", subdomainErrors],
  ["Dispatch namespaces", namespaceErrors],
  ["Static assets", assetErrors],
  ["Key-value namespaces", kvErrors],
  ["Queues", queueErrors],
  ["Schedules", scheduleErrors],
  ["Live logs", tailErrors],
  ["Workflows", workflowErrors],
  ["Visitors at the edge", visitorErrors],
];
// Reads as "…" in a message, whether it is printed or joined.
const detail = ["…"];

/** docs/reference/errors.md: every error, from the tables in the code. */
export function errorsPage(): string {
  const sections = tables.map(([title, errors]) => {
    const rows = Object.values(errors).map((make) => {
      const { status, code, message } = (make as (...details: unknown[]) => ApiError)(detail, detail, detail);
      return `| ${code} | ${status} | ${message.replaceAll('["…"]', "…")} |`;
    });
    return `## ${title}\n\n| code | status | message |\n|---|---|---|\n${rows.join("\n")}\n`;
  });
  return `# Errors\n\nMade from the code by \`npm run generate\`. "…" stands for what was expected or received.\n\n${sections.join("\n")}`;
}
