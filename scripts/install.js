// Installs the locked dependencies when they are missing. Runs under the Node that started npm (20 or newer).
// One dependency is the Node for all other scripts: npm puts node_modules/.bin first in PATH.
import { existsSync } from "node:fs";
import { spawnSync } from "node:child_process";

const productionOnly = process.argv.includes("--omit=dev");
const installed =
  existsSync("node_modules/node/bin/node") && (productionOnly || existsSync("node_modules/vitest"));
if (!installed) {
  console.error("Installing dependencies (npm ci) …");
  const args = ["ci", "--loglevel=error", ...(productionOnly ? ["--omit=dev"] : [])];
  const npm = spawnSync("npm", args, { stdio: ["ignore", 2, 2], shell: process.platform === "win32" });
  if (npm.status !== 0) process.exit(npm.status ?? 1);
}
