import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Pebble } from "../../tls/pebble.ts";
import { environmentOf } from "./packages.ts";
import type { Outcome } from "./public-api.ts";

interface CertbotRun {
  /** The folder of the program's packages. */
  packages: string;
  /** A working folder. */
  folder: string;
  api: string;
  token: string;
  pebble: Pebble;
  domains: readonly string[];
  propagationSeconds?: number;
}

/** Runs certbot as its package is, with an empty account. It obtains a certificate over DNS-01. */
export async function runCertbot({
  packages,
  folder,
  api,
  token,
  pebble,
  ...run
}: CertbotRun): Promise<Outcome> {
  const credentials = join(folder, "credentials.ini");
  writeFileSync(credentials, `dns_cloudflare_api_token = ${token}\n`, { mode: 0o600 });
  const folders = ["config", "work", "logs"].map((name) => join(folder, name));
  for (const each of folders) {
    rmSync(each, { recursive: true, force: true });
    mkdirSync(each);
  }
  const args = [
    ["-c", "import sys; from certbot.main import main; sys.exit(main(sys.argv[1:]))"],
    ["certonly", "--non-interactive", "--agree-tos", "--email", "owner@certbot.example"],
    ["--server", pebble.directory, "--dns-cloudflare", "--dns-cloudflare-credentials", credentials],
    ["--dns-cloudflare-propagation-seconds", String(run.propagationSeconds ?? 0)],
    run.domains.flatMap((domain) => ["-d", domain]),
    ["--config-dir", folders[0]!, "--work-dir", folders[1]!, "--logs-dir", folders[2]!],
  ].flat();
  const env = {
    ...environmentOf(packages),
    HOME: folder,
    LANG: "C.UTF-8",
    REQUESTS_CA_BUNDLE: pebble.ca,
    CLOUDFLARE_API_URL: api,
  };
  return new Promise((done) => {
    execFile("/usr/bin/python3", args, { env, cwd: folder, timeout: 120_000 }, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : (error.code ?? "killed"), stdout, stderr }),
    );
  });
}
