import { apiErrors, type ApiError, type ErrorCodes } from "../../src/control/api/errors.ts";
import type { DomainError } from "../../src/platform/domain-error.ts";
import { d1ErrorCodes } from "../../src/products/d1/api-errors.ts";
import { d1Errors } from "../../src/products/d1/errors.ts";
import { kvErrorCodes } from "../../src/products/kv/api-errors.ts";
import { queueErrorCodes } from "../../src/products/queues/api-errors.ts";
import { memberErrors } from "../../src/control/members/errors.ts";
import { assetErrors } from "../../src/workers/assets/errors.ts";
import { namespaceErrors } from "../../src/workers/scripts/namespaces/errors.ts";
import { dnsErrors } from "../../src/dns/records/errors.ts";
import { visitorErrors, type VisitorError } from "../../src/edge/http/errors.ts";
import { imageErrors } from "../../src/products/images/errors.ts";
import { transformationErrors } from "../../src/products/images/transformations/errors.ts";
import { kvErrors } from "../../src/products/kv/errors.ts";
import { dnssecErrors } from "../../src/dns/dnssec/errors.ts";
import { transferErrors } from "../../src/dns/transfers/errors.ts";
import { queueErrors } from "../../src/products/queues/errors.ts";
import { rulesetErrors } from "../../src/control/rulesets/errors.ts";
import { scheduleErrors } from "../../src/products/schedules/errors.ts";
import {
  scriptDomainErrors,
  routeErrors,
  subdomainErrors,
} from "../../src/workers/scripts/routing/errors.ts";
import { scriptErrors } from "../../src/workers/scripts/errors.ts";
import { objectErrors } from "../../src/workers/scripts/versions/object-errors.ts";
import { snippetErrors } from "../../src/products/snippets/errors.ts";
import { smartRoutingErrors } from "../../src/edge/smart-routing/errors.ts";
import { tailErrors } from "../../src/workers/tail/errors.ts";
import { certificateErrors, packErrors } from "../../src/edge/tls/certificates/errors.ts";
import { workflowErrors } from "../../src/products/workflows/errors.ts";
import { zoneErrors } from "../../src/control/zones/errors.ts";
import { transferErrorCodes } from "../../src/dns/transfers/api-errors.ts";
import { dnssecErrorCodes } from "../../src/dns/dnssec/api-errors.ts";
import { scheduleErrorCodes } from "../../src/products/schedules/api-errors.ts";
import { snippetErrorCodes } from "../../src/products/snippets/api-errors.ts";
import { tailErrorCodes } from "../../src/workers/tail/api-errors.ts";
import { namespaceErrorCodes } from "../../src/workers/dispatch/api-errors.ts";
import { memberErrorCodes } from "../../src/control/members/api-errors.ts";
import { smartRoutingErrorCodes } from "../../src/edge/smart-routing/api-errors.ts";
import { certificateErrorCodes, packErrorCodes } from "../../src/edge/tls/certificates/api-errors.ts";
import { rulesetErrorCodes } from "../../src/control/rulesets/api-errors.ts";
import {
  scriptDomainErrorCodes,
  routeErrorCodes,
  subdomainErrorCodes,
} from "../../src/workers/scripts/routing/api-errors.ts";
import { dnsErrorCodes } from "../../src/dns/records/api/api-errors.ts";
import { tokenErrors } from "../../src/control/tokens/errors.ts";
import { tokenErrorCodes } from "../../src/control/tokens/api-errors.ts";
import { scriptErrorCodes } from "../../src/workers/scripts/api-errors.ts";
import { assetErrorCodes } from "../../src/workers/assets/uploads/api-errors.ts";
import { workflowErrorCodes } from "../../src/products/workflows/api/api-errors.ts";
import { imageErrorCodes, transformationErrorCodes } from "../../src/products/images/api-errors.ts";
import { zoneErrorCodes } from "../../src/control/zones/api/api-errors.ts";

type Factories = Record<string, (...details: never[]) => ApiError | DomainError | VisitorError>;
/** The codes of errors of a domain are in a table of the API. */
export const errorTables: [title: string, errors: Factories, errorCodes?: ErrorCodes][] = [
  ["Every operation", apiErrors],
  ["Members of accounts", memberErrors, memberErrorCodes],
  ["Tokens", tokenErrors, tokenErrorCodes],
  ["Zones", zoneErrors, zoneErrorCodes],
  ["DNS records", dnsErrors, dnsErrorCodes],
  ["DNSSEC", dnssecErrors, dnssecErrorCodes],
  ["Zone transfers", transferErrors, transferErrorCodes],
  ["Rulesets", rulesetErrors, rulesetErrorCodes],
  ["Smart routing", smartRoutingErrors, smartRoutingErrorCodes],
  ["Certificates", certificateErrors, certificateErrorCodes],
  ["Certificate packs", packErrors, packErrorCodes],
  ["Snippets", snippetErrors, snippetErrorCodes],
  ["Scripts", scriptErrors, scriptErrorCodes],
  ["Durable Objects", objectErrors, scriptErrorCodes],
  ["Routes to scripts", routeErrors, routeErrorCodes],
  ["Domains of scripts", scriptDomainErrors, scriptDomainErrorCodes],
  ["Subdomains of accounts", subdomainErrors, subdomainErrorCodes],
  ["Dispatch namespaces", namespaceErrors, namespaceErrorCodes],
  ["Static assets", assetErrors, assetErrorCodes],
  ["Key-value namespaces", kvErrors, kvErrorCodes],
  ["D1", d1Errors, d1ErrorCodes],
  ["Queues", queueErrors, queueErrorCodes],
  ["Schedules", scheduleErrors, scheduleErrorCodes],
  ["Live logs", tailErrors, tailErrorCodes],
  ["Workflows", workflowErrors, workflowErrorCodes],
  ["Images", imageErrors, imageErrorCodes],
  ["Transformations of zones", transformationErrors, transformationErrorCodes],
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
      // Outside of code, Markdown reads <name> as HTML.
      const text = message.replaceAll('["…"]', "…").replace(/[<|]/g, "\\$&");
      return `| ${code} | ${status === "origin" ? "the origin's" : status} | ${text} |`;
    });
    return `## ${title}\n\n| code | status | message |\n|---|---|---|\n${rows.join("\n")}\n`;
  });
  return `# Errors\n\n\`npm run generate\` makes this page from the code. "…" stands for a value of the call.\n\n${sections.join("\n")}`;
}
