import { readFileSync, writeFileSync } from "node:fs";
import { declarationsModule } from "./generate/declarations.ts";
import { edgeCapabilitiesModule } from "./generate/edge-capabilities.ts";

/** Writes every file that is made from the code. With --check it only reports files that are not current. */
const isCheck = process.argv.includes("--check");

function keepCurrent(path: string, content: string): void {
  if (read(path) === content) return;
  if (isCheck) {
    process.stderr.write(`${path} is not current. Run: npm run generate\n`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, content);
    process.stderr.write(`wrote ${path}\n`);
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

// First, because the modules of capabilities, which the others load, use it.
keepCurrent("src/declarations.ts", declarationsModule());
const [
  { absentProducts },
  { alertRules },
  { billOfMaterials },
  { board },
  { configurationPage },
  { errorsPage },
  { importFileSchema },
  { openapi },
  { openapiTest },
  { sqliteSchema },
  states,
] = await Promise.all([
  import("./generate/absent-products.ts"),
  import("./generate/monitoring/alerts.ts"),
  import("./generate/bill-of-materials.ts"),
  import("./generate/monitoring/board.ts"),
  import("./generate/configuration.ts"),
  import("./generate/errors.ts"),
  import("./generate/import-file.ts"),
  import("./generate/openapi.ts"),
  import("./generate/openapi-test.ts"),
  import("./generate/sqlite-schema.ts"),
  import("./generate/workflow-states.ts"),
]);
keepCurrent("src/edge-capabilities.ts", await edgeCapabilitiesModule());
const files: Record<string, () => string | Promise<string>> = {
  "openapi.json": openapi,
  "openapi-test.json": openapiTest,
  "bom.cdx.json": billOfMaterials,
  "src/control/api/server/absent-products.json": absentProducts,
  "src/platform/storage/migrations/sqlite-schema.json": sqliteSchema,
  "packaging/grafana/selvedge.json": board,
  "packaging/prometheus/alerts.yaml": alertRules,
  "docs/reference/configuration.md": configurationPage,
  "docs/reference/errors.md": errorsPage,
  "docs/reference/import-file.schema.json": importFileSchema,
  "docs/reference/workflow-states.md": states.workflowStatesPage,
};
for (const [path, make] of Object.entries(files)) keepCurrent(path, await make());
