import { apiErrors, type ApiError } from "../../src/api/errors.ts";
import { dnsErrors } from "../../src/dns/errors.ts";
import { visitorErrors, type VisitorError } from "../../src/edge/errors.ts";
import { rulesetErrors } from "../../src/rulesets/ruleset.ts";
import { snippetErrors } from "../../src/snippets/snippet.ts";
import { zoneErrors } from "../../src/zones/zone.ts";

type Factories = Record<string, (...details: never[]) => ApiError | VisitorError>;
const tables: [title: string, errors: Factories][] = [
  ["Every operation", apiErrors],
  ["Zones", zoneErrors],
  ["DNS records", dnsErrors],
  ["Rulesets", rulesetErrors],
  ["Snippets", snippetErrors],
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
