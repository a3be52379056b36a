import { readFileSync, writeFileSync } from "node:fs";
import { absentProducts } from "./generate/absent-products.ts";
import { billOfMaterials } from "./generate/bill-of-materials.ts";
import { configurationPage } from "./generate/configuration.ts";
import { errorsPage } from "./generate/errors.ts";
import { openapi } from "./generate/openapi.ts";
import { workflowStatesPage } from "./generate/workflow-states.ts";

/** Writes every file that is made from the code. With --check it only reports files that are not current. */
const files: Record<string, () => string> = {
  "openapi.json": openapi,
  "bom.cdx.json": billOfMaterials,
  "src/control/api/server/absent-products.json": absentProducts,
  "docs/reference/configuration.md": configurationPage,
  "docs/reference/errors.md": errorsPage,
  "docs/reference/workflow-states.md": workflowStatesPage,
};
const isCheck = process.argv.includes("--check");
for (const [path, make] of Object.entries(files)) {
  const content = make();
  if (read(path) === content) continue;
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
