// Installs the locked dependencies when one is missing or has another version. Runs under the Node that started npm
// (20 or newer). One dependency is the Node for all other scripts: npm puts node_modules/.bin first in PATH.
import { existsSync, readFileSync } from "node:fs";
import { spawnSync } from "node:child_process";

const productionOnly = process.argv.includes("--omit=dev");
const read = (file) => JSON.parse(readFileSync(file, "utf8"));
const { dependencies, devDependencies } = read("package.json");
const isInstalled = ([name, version]) => {
  const file = `node_modules/${name}/package.json`;
  return existsSync(file) && read(file).version === version;
};
const wanted = { ...dependencies, ...(productionOnly ? {} : devDependencies) };
const installed = existsSync("node_modules/node/bin/node") && Object.entries(wanted).every(isInstalled);
if (!installed) {
  console.error("Installing dependencies (npm ci) …");
  const args = ["ci", "--loglevel=error", ...(productionOnly ? ["--omit=dev"] : [])];
  const npm = spawnSync("npm", args, { stdio: ["ignore", 2, 2], shell: process.platform === "win32" });
  if (npm.status !== 0) process.exit(npm.status ?? 1);
}
