import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ConfiguredCertificates } from "./configured.ts";
import { openLocalAuthority, type LocalAuthority } from "./local-authority.ts";

let folder: string;
let authority: LocalAuthority;
let text: string;
const warnings: unknown[] = [];
const logger = { info: () => {}, warn: (...all: unknown[]) => void warnings.push(all) };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-configured-"));
  authority = openLocalAuthority(folder);
  text = `${join(folder, "a.pem")}:${join(folder, "a.key")}`;
  warnings.length = 0;
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(host: string, parts: ("pem" | "key")[] = ["pem", "key"]): void {
  const pair = authority.issue([host]);
  if (parts.includes("pem")) writeFileSync(join(folder, "a.pem"), pair.certificate);
  if (parts.includes("key")) writeFileSync(join(folder, "a.key"), pair.privateKey);
}

it("are reloaded when their files change, and kept while certificate and key do not match", async () => {
  write("one.example");
  const configured = new ConfiguredCertificates([text], logger);
  expect(configured.current[0]!.hosts).toEqual(["one.example"]);
  let hosts: readonly string[] = [];
  configured.watch(([first]) => (hosts = first!.hosts), 20);
  write("two.example");
  await expect.poll(() => hosts).toEqual(["two.example"]);
  write("three.example", ["pem"]);
  await expect.poll(() => warnings.length).toBeGreaterThan(0);
  expect(configured.current[0]!.hosts).toEqual(["two.example"]);
  write("four.example");
  await expect.poll(() => hosts).toEqual(["four.example"]);
  configured.close();
});

it("cause an error at startup when they are invalid", () => {
  expect(() => new ConfiguredCertificates([text], logger)).toThrow(/ENOENT/);
  write("one.example");
  write("two.example", ["key"]);
  expect(() => new ConfiguredCertificates([text], logger)).toThrow(/does not belong/);
});
