import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../../helpers/process.ts";
import { startTestServer, type TestServer } from "../../helpers/server.ts";
import { hasPebble, preparePebble, type Pebble } from "../../tls/pebble.ts";
import { describeProgram } from "./describe.ts";
import { debian, environmentOf, type Installed } from "./packages.ts";

/**
 * Certbot proves a name to an authority, with records that it creates through the API and that the authority
 * reads from the name server.
 */
const domain = "certbot-of-others.com";
const packages: Installed = hasPebble
  ? debian("certbot", "python3-certbot-dns-cloudflare")
  : { missing: "pebble is not installed" };

describeProgram("certbot with its DNS plugin", packages, (packageFolder) => {
  let server: TestServer;
  let pebble: Pebble;
  const folder = temporaryFolder();

  beforeAll(async () => {
    server = await startTestServer();
    pebble = await preparePebble(3600);
    await pebble.start(server.ready.dns, Number(new URL(server.ready.edge).port));
  });
  afterAll(async () => {
    await pebble.stop();
    await server.close(1000);
    rmSync(folder, { recursive: true, force: true });
  });

  it("obtains a certificate for a zone and all names below it, and leaves no record behind", async () => {
    const zoneId = await server.newZone(domain);
    const token = await server.clientWith("DNS Write", {
      [`com.cloudflare.api.account.zone.${zoneId}`]: "*",
    });
    const credentials = join(folder, "credentials.ini");
    writeFileSync(credentials, `dns_cloudflare_api_token = ${token.apiToken}\n`, { mode: 0o600 });
    const folders = ["config", "work", "logs"].map((name) => join(folder, name));
    for (const each of folders) mkdirSync(each);
    const args = [
      [
        "-m",
        "certbot.main",
        "certonly",
        "--non-interactive",
        "--agree-tos",
        "--email",
        "owner@certbot.example",
      ],
      ["--server", pebble.directory, "--dns-cloudflare", "--dns-cloudflare-credentials", credentials],
      ["--dns-cloudflare-propagation-seconds", "0", "-d", domain, "-d", `*.${domain}`],
      ["--config-dir", folders[0]!, "--work-dir", folders[1]!, "--logs-dir", folders[2]!],
    ].flat();
    const env = {
      ...environmentOf(packageFolder),
      HOME: folder,
      LANG: "C.UTF-8",
      REQUESTS_CA_BUNDLE: pebble.ca,
      CLOUDFLARE_API_URL: server.ready.api,
    };
    await promisify(execFile)(
      "/usr/bin/python3",
      ["-c", "import sys; from certbot.main import main; sys.exit(main(sys.argv[1:]))", ...args],
      { env, cwd: folder, timeout: 120_000 },
    );
    const certificate = new X509Certificate(readFileSync(join(folder, "config/live", domain, "cert.pem")));
    expect(certificate.subjectAltName?.split(", ").toSorted()).toEqual([`DNS:*.${domain}`, `DNS:${domain}`]);
    expect((await server.client.dns.records.list({ zone_id: zoneId })).result).toEqual([]);
  }, 180_000);
});
