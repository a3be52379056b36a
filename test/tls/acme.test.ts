import { createServer, type Server } from "node:http";
import { Resolver } from "node:dns/promises";
import type { AddressInfo } from "node:net";
import { connect, type DetailedPeerCertificate, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { hasPebble, preparePebble, type Pebble } from "./pebble.ts";

/** Certificates from a real ACME authority, which validates at our own name server and edge. */
const certificateSeconds = 18;
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

  const becomesTrusted = async (host: string): Promise<void> =>
    expect.poll(() => isTrusted(host), { timeout: 40_000, interval: 100 }).toBe(true);
  const order = async (zoneId: string, hosts: string[], validation_method: "txt" | "http") =>
    server.call("POST", `/zones/${zoneId}/ssl/certificate_packs/order`, {
      type: "advanced",
      hosts,
      validation_method,
      validity_days: 90,
      certificate_authority: "lets_encrypt",
    });
  const pack = async (zoneId: string, id: string) =>
    (await server.call("GET", `/zones/${zoneId}/ssl/certificate_packs/${id}`)).body.result;

  it("are issued by DNS-01 with a wildcard, served at once, and renewed in time", async () => {
    const id = await makeZone("dns.acme-test.org");
    await becomesTrusted("www.dns.acme-test.org");
    expect((await packs(id))[0]).toMatchObject({
      type: "universal",
      status: "active",
      validation_method: "txt",
      hosts: ["dns.acme-test.org", "*.dns.acme-test.org"],
      validation_errors: [],
    });
    const before = await serial("other.dns.acme-test.org");
    // The last third of its lifetime begins after 12 s, and no visitor gets an expired one.
    await expect
      .poll(
        async () => {
          expect(await isTrusted("www.dns.acme-test.org")).toBe(true);
          return serial("www.dns.acme-test.org");
        },
        { timeout: 40_000, interval: 200 },
      )
      .not.toBe(before);
    // The challenges have been removed.
    const resolver = new Resolver();
    resolver.setServers([server.ready.dns]);
    await expect(resolver.resolveTxt("_acme-challenge.dns.acme-test.org")).rejects.toMatchObject({
      code: "ENOTFOUND",
    });
  });

  it("are issued by HTTP-01, which the edge answers before it redirects to https", async () => {
    const id = await makeZone("http.acme-test.org");
    await server.call("PATCH", `/zones/${id}/settings/always_use_https`, { value: "on" });
    await server.call("PATCH", `/zones/${id}/ssl/universal/settings`, { enabled: false });
    await expect.poll(() => packs(id)).toEqual([]);
    const ordered = (await order(id, ["www.http.acme-test.org"], "http")).body.result;
    expect(ordered).toMatchObject({ status: "initializing", certificates: [] });
    await becomesTrusted("www.http.acme-test.org");
    const issued = await pack(id, ordered.id);
    expect(issued).toMatchObject({ status: "active", hosts: ["www.http.acme-test.org"] });
    expect(issued.certificates).toHaveLength(1);
    // Other tokens are answered by the origin.
    const path = "/.well-known/acme-challenge/of-the-origins-own-client";
    expect((await requestEdge(server.ready.edge, "www.http.acme-test.org", path)).body).toBe(
      `origin ${path}`,
    );
    expect((await requestEdge(server.ready.edge, "www.http.acme-test.org", "/")).status).toBe(301);
    await server.call("DELETE", `/zones/${id}/ssl/certificate_packs/${ordered.id}`);
    expect(await isTrusted("www.http.acme-test.org")).toBe(false);
  });

  it("are retried after a failure, and report its reason", async () => {
    const id = await makeZone("late.acme-test.org");
    const ordered = (await order(id, ["app.late.acme-test.org"], "http")).body.result;
    await expect.poll(async () => (await pack(id, ordered.id)).validation_errors).toHaveLength(1);
    expect(await pack(id, ordered.id)).toMatchObject({ status: "pending_validation", certificates: [] });
    const record = { type: "A", name: "app", content: "127.0.0.1", proxied: true };
    await server.call("POST", `/zones/${id}/dns_records`, record);
    await expect.poll(async () => (await pack(id, ordered.id)).status, { timeout: 40_000 }).toBe("active");
    expect((await pack(id, ordered.id)).validation_errors).toEqual([]);
  });

  it("of a partial zone are issued by HTTP-01, for each proxied name", async () => {
    const id = await makeZone("partial-acme-test.org", "partial");
    await server.call("PUT", `/zones/${id}/activation_check`);
    await expect.poll(async () => (await packs(id)).length).toBe(1);
    expect((await packs(id))[0]).toMatchObject({
      type: "universal",
      validation_method: "http",
      hosts: ["www.partial-acme-test.org"],
    });
  });

  it("are issued by an authority that has lost our account", async () => {
    const id = await makeZone("again.acme-test.org");
    await becomesTrusted("www.again.acme-test.org");
    await pebble.restart();
    root = await pebble.root();
    expect(await isTrusted("www.again.acme-test.org")).toBe(false);
    const [universal] = await packs(id);
    await server.call("PATCH", `/zones/${id}/ssl/certificate_packs/${universal.id}`);
    await becomesTrusted("www.again.acme-test.org");
  });
});

it.skipIf(!hasPebble && process.env["CI_TOOLS"] !== "1")(
  "an account is bound to the configured external account",
  async () => {
    const key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    const strict = await preparePebble(3600, { kid: "kid-1", key });
    const start = async (acmeEabKey: string): Promise<TestServer> =>
      startTestServer({
        acmeDirectory: strict.directory,
        acmeCa: strict.ca,
        acmeEabKid: "kid-1",
        acmeEabKey,
        acmeRetrySeconds: 1,
        logLevel: "error",
      });
    const [wrong, right] = [await start(`A${key.slice(1)}`), await start(key)];
    try {
      await strict.start(right.ready.dns, 1);
      const first = async (running: TestServer) => {
        const { id } = (await running.call("POST", "/zones", { name: "bound-acme-test.org" })).body.result;
        return async () =>
          (await running.call("GET", `/zones/${id}/ssl/certificate_packs`)).body.result[0] ?? {};
      };
      const [refused, issued] = [await first(wrong), await first(right)];
      await expect.poll(async () => (await issued()).status, { timeout: 40_000 }).toBe("active");
      const why = async (): Promise<string> => (await refused()).validation_errors?.[0]?.message ?? "";
      await expect.poll(why, { timeout: 40_000 }).toMatch(/external account/i);
      expect(await refused()).toMatchObject({ status: "pending_validation", certificates: [] });
    } finally {
      await Promise.all([wrong.close(0), right.close(0)]);
      await strict.stop();
    }
  },
);
