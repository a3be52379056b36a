import { X509Certificate } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "node:tls";
import { openLocalAuthority, type LocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";
import { permissionGroups } from "../../src/control/access/permissions.ts";
import type { ApiResponse, TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { ask } from "../name-server/ask.ts";

/** An account whose zones identify it in responses, DNS answers and certificates. */
export interface Customer {
  label: string;
  accountId: string;
  /** Calls the API with all permissions on the account and its zones, and no others. */
  call(method: string, path: string, body?: unknown): Promise<ApiResponse>;
  /** Creates and checks a zone, and returns its id. */
  zone(name: string): Promise<string>;
  /** Makes everything on a host of one of the account's zones show the label. */
  serve(zoneId: string, host: string): Promise<void>;
}

/** Creates accounts, each with its own origin. */
export class Customers {
  readonly #server: TestServer;
  readonly #authorities: string;
  readonly #origins: Server[] = [];
  readonly #signers = new Map<string, LocalAuthority>();

  /** `folder` is for certificate authorities. */
  constructor(server: TestServer, folder: string) {
    this.#server = server;
    this.#authorities = folder;
  }

  async add(label: string): Promise<Customer> {
    const server = this.#server;
    const { accounts } = server.services;
    const ownerUserId = accounts.findUserByEmail("owner@selvedge.localhost")!.id;
    const { id } = await accounts.create({ name: label, type: "standard", ownerUserId });
    const created = await server.call("POST", `/accounts/${id}/tokens`, { name: label, policies: all(id) });
    const authorization = `Bearer ${(created.body.result as { value: string }).value}`;
    const call: Customer["call"] = (method, path, body) => server.call(method, path, body, { authorization });
    const port = await this.#origin(label);
    const signer = openLocalAuthority(`${this.#authorities}/${label}`);
    this.#signers.set(label, signer);
    return {
      label,
      accountId: id,
      call,
      async zone(name) {
        const { body } = await call("POST", "/zones", { account: { id }, name });
        if (!body.success) throw new Error(`${name}: ${JSON.stringify(body.errors)}`);
        await call("PUT", `/zones/${body.result.id}/activation_check`);
        return body.result.id as string;
      },
      async serve(zoneId, host) {
        const records = `/zones/${zoneId}/dns_records`;
        await call("POST", records, { type: "A", name: host, content: "127.0.0.1", proxied: true });
        await call("POST", records, { type: "TXT", name: host, content: label });
        const rule = { action: "route", expression: "true", action_parameters: { origin: { port } } };
        await call("PUT", `/zones/${zoneId}/rulesets/phases/http_request_origin/entrypoint`, {
          rules: [rule],
        });
        const { certificate, privateKey: private_key } = signer.issue([host]);
        await call("POST", `/zones/${zoneId}/custom_certificates`, { certificate, private_key });
      },
    };
  }

  /** A certificate made by the customer, with any names. */
  certificate(label: string, hosts: string[]): { certificate: string; private_key: string } {
    const { certificate, privateKey } = this.#signers.get(label)!.issue(hosts);
    return { certificate, private_key: privateKey };
  }

  /**
   * The names of the customers that serve a host's visitors, answer its DNS queries, and have its certificate. "nobody"
   * stands for a part that no customer serves.
   */
  async whose(host: string): Promise<{ edge: string; dns: string; tls: string }> {
    const [page, dnsResponse, tls] = await Promise.all([
      requestEdge(this.#server.ready.edge, host),
      ask(this.#server, host, "TXT"),
      this.#signerOf(host),
    ]);
    const text = dnsResponse.answers.find((answer) => answer.includes(" TXT "))?.split(" TXT ")[1];
    return { edge: page.status === 200 ? page.body : "nobody", dns: text ?? "nobody", tls };
  }

  close(): void {
    for (const origin of this.#origins) origin.close();
  }

  async #origin(label: string): Promise<number> {
    const origin = createServer((_, response) => response.end(label));
    await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
    origin.unref();
    this.#origins.push(origin);
    return (origin.address() as AddressInfo).port;
  }

  #signerOf(servername: string): Promise<string> {
    const port = Number(new URL(this.#server.ready.edge_tls!).port);
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port, servername, rejectUnauthorized: false };
      const socket = connect(options, () => {
        const peer = socket.getPeerX509Certificate()!;
        socket.destroy();
        for (const [label, { publicKey }] of this.#publicKeys())
          if (peer.verify(publicKey)) return resolve(label);
        resolve("nobody");
      });
      socket.on("error", reject);
    });
  }

  *#publicKeys(): Generator<[string, X509Certificate]> {
    for (const [label, { certificate }] of this.#signers) yield [label, new X509Certificate(certificate)];
  }
}

function all(account: string): object[] {
  const name = `com.cloudflare.api.account.${account}`;
  return (["account", "zone"] as const).map((kind) => ({
    effect: "allow",
    resources: { [name]: kind === "account" ? "*" : { "com.cloudflare.api.account.zone.*": "*" } },
    permission_groups: permissionGroups.filter(({ scope }) => scope === kind).map(({ id }) => ({ id })),
  }));
}
