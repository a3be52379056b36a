import { X509Certificate } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../../helpers/process.ts";
import { startTestServer, type TestServer } from "../../helpers/server.ts";
import { hasPebble, preparePebble, type Pebble } from "../../tls/pebble.ts";
import { runCertbot } from "./certbot.ts";
import { describeProgram } from "./describe.ts";
import { debian, type Installed } from "./packages.ts";

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
    const outcome = await runCertbot({
      packages: packageFolder,
      folder,
      api: server.ready.api,
      token: token.apiToken!,
      pebble,
      domains: [domain, `*.${domain}`],
    });
    expect(outcome).toMatchObject({ code: 0 });
    const certificate = new X509Certificate(readFileSync(join(folder, "config/live", domain, "cert.pem")));
    expect(certificate.subjectAltName?.split(", ").toSorted()).toEqual([`DNS:*.${domain}`, `DNS:${domain}`]);
    expect((await server.client.dns.records.list({ zone_id: zoneId })).result).toEqual([]);
  });
});
