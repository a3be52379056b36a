import { spawn } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { blocksOf, expectedOf } from "../helpers/blocks.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { fillAccount } from "./account.ts";

/** The commands of docs/migrating.md, as they stand. Another Selvedge stands in for the account. */
let account: TestServer;
const folder = temporaryFolder();

beforeAll(async () => {
  account = await startTestServer();
  await fillAccount(account);
  mkdirSync(join(folder, "bin"));
  symlinkSync(resolve("bin/selvedge.js"), join(folder, "bin/selvedge"));
});
afterAll(() => account.close(1000));

it("the guide leads from an account to an installation", { timeout: 180_000 }, async () => {
  const blocks = blocksOf("docs/migrating.md").filter(({ use }) => use === "migrate");
  expect(blocks.length).toBeGreaterThanOrEqual(5);
  const script = [...blocks.map(({ code }) => code), "kill %1 && wait %1"].join("\n");
  const child = spawn("bash", ["-euo", "pipefail", "-c", script], {
    cwd: folder,
    env: {
      PATH: [join(folder, "bin"), resolve("node_modules/.bin"), process.env["PATH"]].join(":"),
      HOME: folder,
      CLOUDFLARE_BASE_URL: account.ready.api,
      CLOUDFLARE_API_TOKEN: ownerToken,
      CLOUDFLARE_DNS: account.ready.dns,
    },
    detached: true,
  });
  const run = { output: "", errors: "" };
  child.stdout.on("data", (chunk: Buffer) => (run.output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (run.errors += chunk.toString()));
  const code = await new Promise((closed) => child.on("close", closed));
  expect({ code, ...(code === 0 ? {} : run) }).toEqual({ code: 0 });
  for (const expected of expectedOf(script)) expect(run.output).toContain(expected);
});
