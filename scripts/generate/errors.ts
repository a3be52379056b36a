import { apiErrors, type ApiError, type ErrorCodes } from "../../src/control/api/errors.ts";
import type { DomainError } from "../../src/platform/domain-error.ts";
import { kvErrorCodes } from "../../src/products/kv/api-errors.ts";
import { queueErrorCodes } from "../../src/products/queues/api-errors.ts";
import { memberErrors } from "../../src/control/accounts/errors.ts";
import { assetErrors } from "../../src/workers/assets/asset.ts";
import { namespaceErrors } from "../../src/workers/dispatch/namespaces.ts";
import { dnsErrors } from "../../src/dns/records/errors.ts";
import { visitorErrors, type VisitorError } from "../../src/edge/request/errors.ts";
import { imageErrors } from "../../src/products/images/errors.ts";
import { transformationErrors } from "../../src/products/images/transformations/errors.ts";
import { kvErrors } from "../../src/products/kv/errors.ts";
import { dnssecErrors } from "../../src/dns/dnssec/dnssec.ts";
import { transferErrors } from "../../src/dns/transfers/errors.ts";
import { queueErrors } from "../../src/products/queues/errors.ts";
import { rulesetErrors } from "../../src/control/rulesets/ruleset.ts";
import { scheduleErrors } from "../../src/products/schedules/schedule.ts";
import { domainErrors } from "../../src/workers/scripts/routing/domains.ts";
import { routeErrors } from "../../src/workers/scripts/routing/routes.ts";
import { scriptErrors } from "../../src/workers/scripts/script.ts";
import { subdomainErrors } from "../../src/workers/scripts/routing/subdomains.ts";
import { snippetErrors } from "../../src/products/snippets/snippet.ts";
import { smartRoutingErrors } from "../../src/edge/smart-routing/errors.ts";
import { tailErrors } from "../../src/workers/tail/tails.ts";
import { certificateErrors } from "../../src/edge/tls/certificates/certificate.ts";
import { packErrors } from "../../src/edge/tls/certificates/packs.ts";
import { workflowErrors } from "../../src/products/workflows/workflow.ts";
import { zoneErrors } from "../../src/control/zones/zone.ts";

type Factories = Record<string, (...details: never[]) => ApiError | DomainError | VisitorError>;
/** The codes of errors of a domain are in a table of the API. */
export const errorTables: [title: string, errors: Factories, errorCodes?: ErrorCodes][] = [
  ["Every operation", apiErrors],
  ["Members of accounts", memberErrors],
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
  ["Key-value namespaces", kvErrors, kvErrorCodes],
  ["Queues", queueErrors, queueErrorCodes],
  ["Schedules", scheduleErrors],
  ["Live logs", tailErrors],
  ["Workflows", workflowErrors],
  ["Images", imageErrors],
  ["Transformations of zones", transformationErrors],
  ["Visitors at the edge", visitorErrors],
];
// Prints as "…" in every message, also where a message joins a list.
const detail = ["…"];

/** The text of docs/reference/errors.md: every error, from the tables in the code. */
export function errorsPage(): string {
  const sections = errorTables.map(([title, errors, errorCodes]) => {
    const rows = Object.values(errors).map((make) => {
      const error = (make as (...details: unknown[]) => ApiError | DomainError)(
        detail,
        detail,
        detail,
        detail,
      );
      const { message } = error;
      const [status, code] = "kind" in error ? errorCodes![error.kind]! : [error.status, error.code];
      return `| ${code} | ${status} | ${message.replaceAll('["…"]', "…")} |`;
    });
    return `## ${title}\n\n| code | status | message |\n|---|---|---|\n${rows.join("\n")}\n`;
  });
  return `# Errors\n\n\`npm run generate\` makes this page from the code. "…" stands for a value of the call.\n\n${sections.join("\n")}`;
}
