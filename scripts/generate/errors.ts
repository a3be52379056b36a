import { errorTables } from "../../src/capabilities.ts";
import type { ApiError } from "../../src/control/api/errors.ts";
import type { DomainError } from "../../src/platform/domain-error.ts";

// Prints as "…" in every message, also where a message joins a list.
const detail = ["…"];

/** The text of docs/reference/errors.md: every error, from the tables in the code. */
export function errorsPage(): string {
  const sections = errorTables.map(({ title, errors, codes }) => {
    const rows = Object.values(errors).map((make) => {
      const error = (make as (...details: unknown[]) => ApiError | DomainError)(
        detail,
        detail,
        detail,
        detail,
      );
      const { message } = error;
      const [status, code] = "kind" in error ? codes![error.kind]! : [error.status, error.code];
      // Outside of code, Markdown reads <name> as HTML.
      const text = message.replaceAll('["…"]', "…").replace(/[<|]/g, "\\$&");
      return `| ${code} | ${status === "origin" ? "the origin's" : status} | ${text} |`;
    });
    return `## ${title}\n\n| code | status | message |\n|---|---|---|\n${rows.join("\n")}\n`;
  });
  return `# Errors\n\n\`npm run generate\` makes this page from the code. "…" stands for a value of the call. Messages are in the\n\`errors.ts\` of the folder that throws them, status and code in the \`api-errors.ts\` beside it.\n\n${sections.join("\n")}`;
}
