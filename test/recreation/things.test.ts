import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, expect, it } from "vitest";
import { roles } from "../../src/control/accounts/roles.ts";
import { accountHash } from "../../src/products/images/directory.ts";
import { openLocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";
import { ownerToken, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { pngOf, fourColors, scenery } from "../images/fixtures.ts";
import { ask } from "../name-server/ask.ts";
import { describeRecreation, eventually, type Place } from "./platform.ts";

/**
 * Each kind of resource is created, deleted, and created again under the same name. Nothing of the first may
 * remain.
 */
const folder = mkdtempSync(join(tmpdir(), "selvedge-recreation-"));
const authority = openLocalAuthority(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const settings = { privateNetworks: "all", edgeTlsListen: "127.0.0.1:0" };

/** A call that must succeed. */
async function must(server: TestServer, method: string, path: string, body?: unknown) {
  const answer = await server.call(method, path, body);
  if (!answer.body.success) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body.errors)}`);
  return answer.body.result as { id: string } & Record<string, never>;
}

const says = (text: string): string =>
  `export default { fetch: (_request, env) => Response.json([${JSON.stringify(text)}, env.SECRET ?? null]), queue() {}, scheduled() {} };`;
const secret = (text: string): object => ({ type: "secret_text", name: "SECRET", text });

describeRecreation("things made again", settings, (at) => {
  it("a script has no version, secret, setting, schedule, consumer or tail of its predecessor", async () => {
    const { own, nodes } = at();
    const script = "/workers/scripts/same";
    await own.deploy("same", { code: says("first"), bindings: [secret("first's")] as never });
    await own.deploy("same", { code: says("first"), bindings: [secret("first's")] as never });
    const queue = (await own.api("POST", "/queues", { queue_name: "fed" })) as { queue_id: string };
    const consumers = `/queues/${queue.queue_id}/consumers`;
    await own.api("POST", consumers, { type: "worker", script_name: "same" });
    await own.api("PUT", `${script}/schedules`, [{ cron: "0 0 1 1 *" }]);
    await own.api("POST", `${script}/tails`);
    for (const node of nodes) await eventually(async () => (await node.ask("same")).body.includes("first's"));
    await own.api("DELETE", script);
    for (const node of nodes) await eventually(async () => (await node.ask("same")).status === 404);
    await own.deploy("same", says("second"));
    for (const node of nodes) {
      await eventually(async () => (await node.ask("same")).status === 200);
      expect((await node.ask("same")).body).toBe('["second",null]');
      expect(await node.api("GET", consumers)).toEqual([]);
      expect(await node.api("GET", `${script}/schedules`)).toMatchObject({ schedules: [] });
      expect(await node.api("GET", `${script}/tails`)).toEqual([]);
    }
    expect(await own.api("GET", `${script}/secrets`)).toEqual([]);
    const { items } = (await own.api("GET", `${script}/versions`)) as { items: unknown[] };
    expect(items).toHaveLength(1);
    expect(await own.api("GET", `${script}/deployments`)).toMatchObject({ deployments: [{}] });
  });

  it("a dispatch namespace has no script of its predecessor, and neither has a script of the same name", async () => {
    const { own, nodes } = at();
    const path = "/workers/dispatch/namespaces";
    await own.createNamespace("hosts");
    await own.deploy("dispatcher", {
      code: `export default { async fetch(_request, env) {
        try { return await env.NS.get("customer").fetch("http://customer/"); } catch (error) { return new Response(error.message, { status: 404 }); }
      } };`,
      bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "hosts" }] as never,
    });
    const expectEverywhere = async (body: string): Promise<void> => {
      for (const node of nodes) await eventually(async () => (await node.ask("dispatcher")).body === body);
    };
    await own.deployCustomer("hosts", "customer", {
      code: says("first"),
      bindings: [secret("first's")] as never,
    });
    await expectEverywhere('["first","first\'s"]');
    await own.api("DELETE", `${path}/hosts/scripts/customer`);
    await expectEverywhere("Worker not found.");
    await own.deployCustomer("hosts", "customer", says("second"));
    await expectEverywhere('["second",null]');
    await own.api("DELETE", `${path}/hosts`);
    await expectEverywhere("Worker not found.");
    await own.createNamespace("hosts");
    expect(await own.api("GET", `${path}/hosts/scripts`)).toEqual([]);
    await own.deployCustomer("hosts", "customer", says("third"));
    await expectEverywhere('["third",null]');
  });

  it("a key-value namespace and a queue have no content of their predecessors", async () => {
    const { own, places } = at();
    for (const { place } of places) {
      const kv = await own.createKv("same", { key: "first's" });
      await own.api("DELETE", `/storage/kv/namespaces/${kv}`);
      const again = await place.createKv("same");
      expect(again).not.toBe(kv);
      expect(await place.api("GET", `/storage/kv/namespaces/${again}/keys`)).toEqual([]);
      const late = await place.answer("PUT", `/storage/kv/namespaces/${kv}/values/key`, "late");
      expect(late.status).toBe(404);
      await place.api("DELETE", `/storage/kv/namespaces/${again}`);

      const first = (await own.api("POST", "/queues", { queue_name: "same" })) as { queue_id: string };
      await own.api("POST", `/queues/${first.queue_id}/consumers`, { type: "http_pull" });
      await own.api("POST", `/queues/${first.queue_id}/messages`, { body: "first's", content_type: "text" });
      const pulled = (await own.api("POST", `/queues/${first.queue_id}/messages/pull`, {})) as {
        messages: { lease_id: string }[];
      };
      await own.api("DELETE", `/queues/${first.queue_id}`);
      const second = (await place.api("POST", "/queues", { queue_name: "same" })) as { queue_id: string };
      await place.api("POST", `/queues/${second.queue_id}/consumers`, { type: "http_pull" });
      await place.api("POST", `/queues/${second.queue_id}/messages`, {
        body: "second's",
        content_type: "text",
      });
      const acks = [{ lease_id: pulled.messages[0]!.lease_id }];
      expect(await place.api("POST", `/queues/${second.queue_id}/messages/ack`, { acks })).toMatchObject({
        ackCount: 0,
      });
      const got = (await place.api("POST", `/queues/${second.queue_id}/messages/pull`, {})) as {
        messages: { body: string }[];
      };
      expect(got.messages.map(({ body }) => body)).toEqual(["second's"]);
      await place.api("DELETE", `/queues/${second.queue_id}`);
    }
  });

  it("an image is delivered in its new form, and its predecessor's upload URL is void", async () => {
    const { own, places } = at();
    for (const { place } of places) {
      const [red, blue] = [await pngOf(fourColors(64, 64)), await pngOf(scenery(48, 48))];
      await upload(own, "same", red);
      const before = await deliver(own, "same");
      const drafted = await draft(own, "drafted");
      await own.api("DELETE", "/images/v1/same");
      await own.api("DELETE", "/images/v1/drafted");
      expect((await deliver(own, "same")).status).toBe(404);
      await upload(place, "same", blue);
      await upload(place, "drafted", blue);
      const after = await deliver(place, "same", before.etag);
      expect(after.status).toBe(200);
      expect(after.bytes).not.toEqual(before.bytes);
      const form = new FormData();
      form.set("file", new File([red as Uint8Array<ArrayBuffer>], "red.png"));
      expect((await fetch(drafted, { method: "POST", body: form })).status).toBe(404);
      for (const id of ["same", "drafted"]) await place.api("DELETE", `/images/v1/${id}`);
    }
  });

  it("a zone has no record, rule, setting, key or certificate of its predecessor, and no lower serial", async () => {
    const { own, places, nodes } = at();
    const name = "same.example";
    let serial = 0;
    for (const { place } of places) {
      const make = async (where: Place) =>
        (await must(where.server, "POST", "/zones", { name, account: { id: where.account } })).id;
      const first = await make(own);
      const zone = `/zones/${first}`;
      const record = { type: "A", name: "www", content: "192.0.2.1", proxied: false, ttl: 300 };
      const { id } = await must(own.server, "POST", `${zone}/dns_records`, record);
      for (let i = 0; i < 20; i++)
        await must(own.server, "PATCH", `${zone}/dns_records/${id}`, { comment: `change ${i}` });
      await must(own.server, "PATCH", `${zone}/dnssec`, { status: "active" });
      await must(own.server, "PATCH", `${zone}/settings/ssl`, { value: "strict" });
      const { certificate, privateKey: private_key } = authority.issue([name]);
      await must(own.server, "POST", `${zone}/custom_certificates`, { certificate, private_key });
      const old = new Set<string>();
      for (const node of nodes)
        await eventually(async () => (await served(node, name)) === fingerprintOf(certificate));
      old.add(fingerprintOf(certificate));
      for (const node of nodes)
        await eventually(async () => (await ask(node.server, `www.${name}`, "A")).answers.length === 1);
      serial = Math.max(serial, await serialOf(own, name));
      await must(own.server, "DELETE", zone);
      for (const node of nodes) {
        await eventually(async () => (await ask(node.server, name, "SOA")).answers.length === 0);
        await eventually(async () => !old.has(await served(node, name)));
      }

      const second = await make(place);
      expect(second).not.toBe(first);
      for (const node of nodes) {
        await eventually(async () => (await ask(node.server, name, "SOA")).answers.length === 1);
        expect((await ask(node.server, `www.${name}`, "A")).answers).toEqual([]);
        expect((await ask(node.server, name, "DNSKEY")).answers).toEqual([]);
        expect(old.has(await served(node, name))).toBe(false);
        expect((await requestEdge(node.server.ready.edge, `www.${name}`)).status).not.toBe(200);
      }
      expect(await serialOf(place, name)).toBeGreaterThan(serial);
      serial = await serialOf(place, name);
      const { server } = place;
      expect(await must(server, "GET", `/zones/${second}/dns_records`)).toEqual([]);
      expect(await must(server, "GET", `/zones/${second}/custom_certificates`)).toEqual([]);
      expect(await must(server, "GET", `/zones/${second}/dnssec`)).toMatchObject({ status: "disabled" });
      expect(await must(server, "GET", `/zones/${second}/settings/ssl`)).not.toMatchObject({
        value: "strict",
      });
      await must(server, "DELETE", `/zones/${second}`);
    }
  });

  it("a token that was deleted, alone or with its account, is rejected everywhere", async () => {
    const { own, nodes } = at();
    const [group] = (await must(
      own.server,
      "GET",
      "/user/tokens/permission_groups?name=Account Settings Read",
    )) as never as { id: string }[];
    const policies = (account: string): object[] => [
      {
        effect: "allow",
        resources: { [`com.cloudflare.api.account.${account}`]: "*" },
        permission_groups: [{ id: group!.id }],
      },
    ];
    const made = await must(own.server, "POST", "/accounts", { name: "with a token", type: "standard" });
    const tokens = [
      { path: "/user/tokens", account: own.account },
      { path: `/accounts/${made.id}/tokens`, account: made.id },
    ];
    for (const { path, account } of tokens) {
      const body = { name: "same", policies: policies(account) };
      const first = await must(own.server, "POST", path, body);
      const works = async (node: Place, value: string): Promise<number> =>
        (
          await node.server.call("GET", `/accounts/${account}`, undefined, {
            authorization: `Bearer ${value}`,
          })
        ).status;
      for (const node of nodes) await eventually(async () => (await works(node, first["value"]!)) === 200);
      if (path === "/user/tokens") await must(own.server, "DELETE", `${path}/${first.id}`);
      else await must(own.server, "DELETE", `/accounts/${account}`);
      for (const node of nodes) await eventually(async () => (await works(node, first["value"]!)) === 401);
      if (path !== "/user/tokens") continue;
      const second = await must(own.server, "POST", path, body);
      for (const node of nodes) await eventually(async () => (await works(node, second["value"]!)) === 200);
      for (const node of nodes) expect(await works(node, first["value"]!)).toBe(401);
    }
  });
});

describeRecreation("members made again", {}, (at) => {
  const dns = roles.find(({ name }) => name === "DNS")!.id;
  const all = roles[0]!.id;
  const statusAt = async (node: Place, token: string, path: string): Promise<number> =>
    (await node.server.call("GET", path, undefined, { authorization: `Bearer ${token}` })).status;

  it("a removed member has no access anywhere, and its invitation is void", async () => {
    const { own, nodes } = at();
    const members = `/accounts/${own.account}/members`;
    const invite = async (role: string) => {
      const body = { email: "same@example.com", roles: [role] };
      const { id, invitation } = await must(own.server, "POST", members, body);
      return { id, url: (invitation as unknown as { url: string }).url };
    };
    const withdrawn = await invite(all);
    await must(own.server, "DELETE", `${members}/${withdrawn.id}`);
    const first = await invite(all);
    expect(first.id).not.toBe(withdrawn.id);
    expect((await fetch(withdrawn.url, { method: "POST" })).status).toBe(404);
    const { result } = (await (await fetch(first.url, { method: "POST" })).json()) as {
      result: { token: string; user: { id: string } };
    };
    const expectEverywhere = async (path: string, status: number): Promise<void> => {
      for (const node of nodes)
        await eventually(async () => (await statusAt(node, result.token, path)) === status);
    };
    const settings = `/accounts/${own.account}`;
    const scripts = `${settings}/workers/scripts`;
    await expectEverywhere(scripts, 200);
    await must(own.server, "PUT", `${members}/${first.id}`, { roles: [{ id: dns }] });
    await expectEverywhere(scripts, 403);
    await expectEverywhere(settings, 200);
    await must(own.server, "DELETE", `${members}/${first.id}`);
    await expectEverywhere(settings, 403);
    expect((await fetch(first.url, { method: "POST" })).status).toBe(404);

    // The user stays, and gets the roles of the second invitation after accepting it.
    const second = await invite(dns);
    expect(second.id).not.toBe(first.id);
    expect((await fetch(second.url, { method: "POST" })).status).toBe(409);
    await expectEverywhere(settings, 403);
    const secretOf = (url: string): string => new URL(url).searchParams.get("secret")!;
    const accept = async (url: string): Promise<number> => {
      const body = { status: "accepted", secret: secretOf(url) };
      const headers = { authorization: `Bearer ${result.token}` };
      return (await own.server.call("PATCH", `/user/invites/${second.id}`, body, headers)).status;
    };
    for (const { url } of [withdrawn, first]) expect(await accept(url)).toBe(404);
    expect(await accept(second.url)).toBe(200);
    await expectEverywhere(settings, 200);
    for (const node of nodes) expect(await statusAt(node, result.token, scripts)).toBe(403);
    await must(own.server, "DELETE", `${members}/${second.id}`);
    await expectEverywhere(settings, 403);
  });

  it("a member removed through one node cannot grant anything through another that has not been notified", async () => {
    const { own, nodes } = at();
    const last = nodes.at(-1)!.server;
    const settings = `/accounts/${own.account}`;
    const body = { email: "quick@example.com", roles: [all] };
    const { id, invitation } = await must(own.server, "POST", `${settings}/members`, body);
    const { url } = invitation as unknown as { url: string };
    const { result } = (await (await fetch(url, { method: "POST" })).json()) as { result: { token: string } };
    for (const node of nodes)
      await eventually(async () => (await statusAt(node, result.token, settings)) === 200);
    const headers = { authorization: `Bearer ${result.token}` };
    const policies = [
      {
        effect: "allow",
        resources: { [`com.cloudflare.api.account.${own.account}`]: "*" },
        permission_groups: [{ name: "Queues Read" }],
      },
    ];
    const token = { name: "outlasts its maker", policies };
    await must(own.server, "DELETE", `${settings}/members/${id}`);
    const given = await Promise.all([
      last.call("POST", `${settings}/tokens`, token, headers),
      last.call("POST", `${settings}/members`, { ...body, email: "accomplice@example.com" }, headers),
    ]);
    expect(given.map(({ status }) => status)).toEqual([403, 403]);
  });

  it("if two Super Administrators remove each other through two nodes, one stays", async () => {
    const { own, nodes } = at();
    const last = nodes.at(-1)!;
    const account = (await must(own.server, "POST", "/accounts", { name: "two" })).id;
    const members = `/accounts/${account}/members`;
    const { id, invitation } = await must(own.server, "POST", members, {
      email: "b@example.com",
      roles: [all],
    });
    const { url } = invitation as unknown as { url: string };
    const { result } = (await (await fetch(url, { method: "POST" })).json()) as { result: { token: string } };
    await eventually(async () => (await statusAt(last, result.token, members)) === 200);
    const listed = (await must(own.server, "GET", members)) as unknown as { id: string }[];
    const owners = listed.find((member) => member.id !== id)!.id;
    const headers = { authorization: `Bearer ${result.token}` };
    const answers = await Promise.all([
      own.server.call("DELETE", `${members}/${id}`),
      last.server.call("DELETE", `${members}/${owners}`, undefined, headers),
    ]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const { read } = own.server.services.workflowInstances;
    const left = await read
      .selectFrom("memberships")
      .select("id")
      .where("account_id", "=", account)
      .execute();
    expect(left).toHaveLength(1);
  });

  it("an account's members and invitations are deleted with it", async () => {
    const { own, nodes } = at();
    const account = await must(own.server, "POST", "/accounts", { name: "short-lived", type: "standard" });
    const members = `/accounts/${account.id}/members`;
    const made = async (email: string) =>
      (await must(own.server, "POST", members, { email, roles: [all] })) as unknown as {
        invitation: { url: string };
      };
    const [left, joined] = [await made("left@example.com"), await made("joined@example.com")];
    const { result } = (await (await fetch(joined.invitation.url, { method: "POST" })).json()) as {
      result: { token: string };
    };
    await must(own.server, "DELETE", `/accounts/${account.id}`);
    expect((await fetch(left.invitation.url, { method: "POST" })).status).toBe(404);
    for (const node of nodes) {
      await eventually(async () => (await statusAt(node, result.token, `/accounts/${account.id}`)) === 404);
      const memberships = await node.server.call("GET", "/memberships", undefined, {
        authorization: `Bearer ${result.token}`,
      });
      expect(memberships.body.result).toEqual([]);
    }
  });
});

async function upload({ server, account }: Place, id: string, file: Buffer): Promise<void> {
  const form = new FormData();
  form.set("id", id);
  form.set("file", new File([file as Uint8Array<ArrayBuffer>], "picture.png"));
  const headers = { authorization: `Bearer ${ownerToken}` };
  const url = `${server.ready.api}/accounts/${account}/images/v1`;
  const answer = await fetch(url, { method: "POST", headers, body: form });
  if (!answer.ok) throw new Error(await answer.text());
}

async function draft({ server, account }: Place, id: string): Promise<string> {
  const form = new FormData();
  form.set("id", id);
  const headers = { authorization: `Bearer ${ownerToken}` };
  const url = `${server.ready.api}/accounts/${account}/images/v2/direct_upload`;
  const answer = (await (await fetch(url, { method: "POST", headers, body: form })).json()) as {
    result: { uploadURL: string };
  };
  return answer.result.uploadURL;
}

async function deliver({ server, account }: Place, id: string, etag?: string) {
  const answer = await fetch(`${server.ready.delivery}/${accountHash(account)}/${id}/public`, {
    headers: { accept: "image/png", ...(etag === undefined ? {} : { "if-none-match": etag }) },
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  return { status: answer.status, etag: answer.headers.get("etag") ?? "", bytes };
}

const fingerprintOf = (certificate: string): string => new X509Certificate(certificate).fingerprint256;

/** The certificate that the edge presents for a host. */
function served({ server }: Place, servername: string): Promise<string> {
  const { hostname, port } = new URL(server.ready.edge_tls!);
  return new Promise((resolve, reject) => {
    const socket = connect(
      { host: hostname, port: Number(port), servername, rejectUnauthorized: false },
      () => {
        resolve(socket.getPeerCertificate().fingerprint256);
        socket.destroy();
      },
    );
    socket.on("error", reject);
  });
}

async function serialOf({ server }: Place, name: string): Promise<number> {
  const [soa] = (await ask(server, name, "SOA")).answers;
  const { serial } = JSON.parse(soa!.slice(soa!.indexOf("{"))) as { serial: number };
  return serial;
}
