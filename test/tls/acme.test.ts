import { X509Certificate } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { connect, type DetailedPeerCertificate, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { hasPebble, preparePebble, type Pebble } from "./pebble.ts";

/** Certificates from a real ACME authority, which asks our own name server and our own edge. */
const certificateSeconds = 24;
let pebble: Pebble;
let server: TestServer;
let origin: Server;
let root: string;

describe.skipIf(!hasPebble && process.env["CI_TOOLS"] !== "1")("certificates by ACME", () => {
  beforeAll(async () => {
    pebble = await preparePebble(certificateSeconds);
    server = await startTestServer({
      edgeTlsListen: "127.0.0.1:0",
      acmeDirectory: pebble.directory,
      acmeCa: pebble.ca,
      acmeEmail: "owner@acme.example",
      acmeRetrySeconds: 1,
      logLevel: "error",
    });
    await pebble.start(server.ready.dns, Number(new URL(server.ready.edge).port));
    root = await pebble.root();
    origin = createServer((request, response) => response.end(`origin ${request.url}`));
    await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    origin?.close();
    await server?.close(1000);
    await pebble?.stop();
  });

  const makeZone = async (name: string, type: "full" | "partial" = "full"): Promise<string> => {
    const id = (await server.call("POST", "/zones", { name, type })).body.result.id as string;
    await server.call("POST", `/zones/${id}/dns_records`, {
      type: "A",
      name: "www",
      content: "127.0.0.1",
      proxied: true,
    });
    await server.call("PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
      rules: [
        {
          action: "route",
          expression: "true",
          action_parameters: { origin: { port: (origin.address() as AddressInfo).port } },
        },
      ],
    });
    return id;
  };
  const packs = async (id: string) =>
    (await server.call("GET", `/zones/${id}/ssl/certificate_packs`)).body.result;
  /** The certificate that a visitor of the host gets. */
  const served = (servername: string): Promise<{ socket: TLSSocket; peer: DetailedPeerCertificate }> =>
    new Promise((resolve, reject) => {
      const { port } = new URL(server.ready.edge_tls!);
      const socket = connect(
        { host: "127.0.0.1", port: Number(port), servername, ca: root, rejectUnauthorized: false },
        () => resolve({ socket, peer: socket.getPeerCertificate(true) }),
      );
      socket.on("error", reject);
    });
  const isTrusted = async (servername: string): Promise<boolean> => {
    const { socket } = await served(servername);
    const { authorized } = socket;
    socket.destroy();
    return authorized;
  };
  const serial = async (servername: string): Promise<string> => {
    const { socket, peer } = await served(servername);
    socket.destroy();
    return peer.serialNumber;
  };

  it(
    "are issued by DNS-01 with a wildcard, served at once, and renewed in time",
    { timeout: 90_000 },
    async () => {
      const id = await makeZone("dns.acme-test.org");
      await expect
        .poll(() => isTrusted("www.dns.acme-test.org"), { timeout: 30_000, interval: 100 })
        .toBe(true);
      const [pack] = await packs(id);
      expect(pack).toMatchObject({
        type: "universal",
        status: "active",
        validation_method: "txt",
        hosts: ["dns.acme-test.org", "*.dns.acme-test.org"],
        validation_errors: [],
      });
      const first = await serial("www.dns.acme-test.org");
      const { socket, peer } = await served("www.dns.acme-test.org");
      socket.destroy();
      expect(new X509Certificate(peer.raw).checkHost("other.dns.acme-test.org")).toBeDefined();
      // Its last third begins after 16 s, and no visitor ever meets one that has expired.
      const until = Date.now() + 60_000;
      let renewals = 0;
      for (let before = first; renewals < 2 && Date.now() < until;) {
        expect(await isTrusted("www.dns.acme-test.org")).toBe(true);
        const now = await serial("www.dns.acme-test.org");
        if (now !== before) renewals += 1;
        before = now;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      expect(renewals).toBe(2);
    },
  );
});
