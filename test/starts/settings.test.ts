import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { main } from "../../src/main.ts";
import type { Setting } from "../../src/platform/config/setting.ts";
import { settings } from "../../src/platform/config/settings.ts";
import { temporaryFolder } from "../helpers/process.ts";

/** Wrong values of settings that name a file, or for which any text but the empty one is right. */
const wrongTexts: Record<string, string> = {
  "data-dir": "/dev/null/data",
  "ready-file": "/dev/null/ready.json",
  "access-log": "/dev/null/access.log",
  "api-access-log": "/dev/null/api.log",
  "geo-city": "/no/such.mmdb",
  "geo-asn": "/no/such.mmdb",
  "acme-ca": "/no/such.pem",
  "origin-ca": "/no/such.pem",
  "tls-certificates": "/no/such.pem:/no/such.key",
  "image-face-detector": "/no/such.js",
  "acme-eab-kid": "",
  "blob-access-key-id": "",
  "blob-secret-access-key": "",
  "backup-access-key-id": "",
  "backup-secret-access-key": "",
  "backup-folder": "/dev/null/backups",
  "backup-passphrase-file": "/no/such/passphrase",
};

function wrongValue(setting: Setting): string {
  if (setting.kind === "text" || setting.kind === "list") return wrongTexts[setting.flag] ?? "\u00a7";
  return setting.kind === "count" ? String(setting.max + 1) : "\u00a7";
}

let errors = "";
let folder = "";
beforeEach(() => {
  errors = "";
  folder = temporaryFolder();
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    errors += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = undefined;
});

const serveWith = (...args: string[]): Promise<void> =>
  main(["node", "selvedge", "serve", "--data-dir", join(folder, "data"), ...args]);

/* In this process, because starting a hundred would take a minute. A value that is not refused starts a server: exit code 0. */
it.each(Object.values(settings) as Setting[])(
  "refuses a wrong value of $flag before it starts",
  async (setting) => {
    const value = wrongValue(setting);
    await serveWith(`--${setting.flag}=${value}`);
    expect([process.exitCode, errors.trim().split("\n").length]).toEqual([1, 1]);
    expect(errors).toContain(setting.flag);
    if (setting.secret === true && value !== "") expect(errors).not.toContain(value);
    expect(readdirSync(folder)).toEqual([]);
  },
);

it.each([
  ["--relays", "a=http://127.0.0.1:1", "relay-secret"],
  ["--acme-eab-key", "abcd", "acme-eab-kid"],
  ["--resolvers", "9.9.9.9:0", "resolvers"],
  ["--edge-addresses", "192.0.2.1,abc", '"abc"'],
  ["--trusted-proxies", "10.0.0.0/33", "trusted-proxies"],
  ["--api-listen", "no host:80", "api-listen"],
  ["--node-listen", "127.0.0.1:1", "database-url"],
  ["--node-listen", "0.0.0.0:1", "node-listen"],
  ["--acme-directory", "http://acme.example/directory", "https"],
])("refuses %s %s, and says so with %s", async (flag, value, message) => {
  await serveWith(flag, value);
  expect(process.exitCode).toBe(1);
  expect(errors).toContain(message);
});

it("refuses a key of another certificate, and a file that is no database", async () => {
  const path = (name: string): string => join(folder, name);
  for (const name of ["a", "b"]) {
    const args = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=${name}.example`;
    spawnSync("openssl", [...args.split(" "), "-keyout", path(`${name}.key`), "-out", path(`${name}.pem`)]);
  }
  await serveWith("--tls-certificates", `${path("a.pem")}:${path("b.key")}`);
  expect(errors).toContain("does not belong");
  errors = "";
  writeFileSync(path("no.mmdb"), "not a database");
  await serveWith("--geo-city", path("no.mmdb"));
  expect(errors).toContain("geo-city");
  expect(existsSync(path("data"))).toBe(false);
});

const run = (...args: string[]) =>
  spawnSync(process.execPath, ["bin/selvedge.js", ...args], { encoding: "utf8", timeout: 120_000 });

it("exits with 1 as a process", () => {
  const { status, stderr } = run("serve", "--ephemeral", "--edge-addresses", "abc");
  expect(status).toBe(1);
  expect(stderr).toBe('Expected an IPv4 or IPv6 address for --edge-addresses but received "abc"\n');
});

it("prints its version", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  expect(run("--version")).toMatchObject({ status: 0, stdout: `${version}\n` });
});
