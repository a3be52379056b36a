import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Command } from "commander";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { registerTlsCommand } from "./tls.ts";

let folder: string;
let out = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-tls-"));
  out = "";
  const keep = (text: string | Uint8Array): boolean => {
    out += String(text);
    return true;
  };
  vi.spyOn(process.stdout, "write").mockImplementation(keep);
  vi.spyOn(process.stderr, "write").mockImplementation(keep);
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

async function run(...args: string[]): Promise<string> {
  out = "";
  const program = new Command("selvedge").exitOverride();
  registerTlsCommand(program);
  await program.parseAsync(["node", "selvedge", "tls", ...args, "--data-dir", folder]);
  return out;
}

it("explains how to trust the authority, which stays the same", async () => {
  const first = await run("trust");
  expect(first).toContain("made just now");
  expect(first).toContain(`NODE_EXTRA_CA_CERTS=${join(folder, "tls", "authority.pem")}`);
  const again = JSON.parse(await run("trust", "--json")) as { file: string; fingerprint256: string };
  expect(first).toContain(again.fingerprint256);
  expect(statSync(join(folder, "tls", "authority.key")).mode & 0o077).toBe(0);
});

it("issues certificates that those who trust the authority believe, and nobody else", async () => {
  const [certificate, key] = (await run("issue", "localhost", "127.0.0.1", "--out", folder))
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
  const NODE_EXTRA_CA_CERTS = join(folder, "tls", "authority.pem");
  expect(await ask({ NODE_EXTRA_CA_CERTS })).toBe("hello\n");
  expect(await ask({})).toMatch(/UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED/);
  server.close();
});

it("refuses what is no host", async () => {
  await expect(run("issue", "a b")).rejects.toThrow(/host name/);
});
