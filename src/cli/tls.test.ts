import { execFile } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { commandLine } from "../../test/helpers/command.ts";
import { registerTlsCommand } from "./tls.ts";

const line = commandLine(registerTlsCommand);
const run = async (...args: string[]): Promise<string> => line.run("tls", ...args, "--data-dir", line.folder);

it("explains how to trust the authority, which persists", async () => {
  const first = await run("trust");
  expect(first).toContain("just created");
  expect(first).toContain(`NODE_EXTRA_CA_CERTS=${join(line.folder, "tls", "authority.pem")}`);
  const again = JSON.parse(await run("trust", "--json")) as { file: string; fingerprint256: string };
  expect(first).toContain(again.fingerprint256);
  expect(statSync(join(line.folder, "tls", "authority.key")).mode & 0o077).toBe(0);
});

it("issues certificates that only programs with the authority accept", async () => {
  const [certificate, key] = (await run("issue", "localhost", "127.0.0.1", "--out", line.folder))
    .trim()
    .split("\n");
  const server = createServer(
    { cert: readFileSync(certificate!), key: readFileSync(key!) },
    (_request, response) => response.end("hello"),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const script = `fetch("https://127.0.0.1:${port}").then((r) => r.text(), (e) => e.cause.code).then(console.log)`;
  const ask = async (env: Record<string, string>): Promise<string> =>
    (await promisify(execFile)(process.execPath, ["-e", script], { env: { ...process.env, ...env } })).stdout;
  const NODE_EXTRA_CA_CERTS = join(line.folder, "tls", "authority.pem");
  expect(await ask({ NODE_EXTRA_CA_CERTS })).toBe("hello\n");
  expect(await ask({})).toMatch(/UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED/);
  server.close();
});

it("rejects an invalid host", async () => {
  await expect(run("issue", "a b")).rejects.toThrow(/host name/);
});
