import type { TestServer } from "../helpers/server.ts";
import { ownerToken } from "../helpers/server.ts";
import { fourColors, pngOf } from "../images/fixtures.ts";
import { uploadForm, type ScriptUpload } from "../runtime/platform.ts";

export const zoneName = "shop.example";

/** The zone's records, with texts that a file must escape. */
export const records = [
  { type: "A", name: "www", content: "192.0.2.1", proxied: true, tags: ["team:web"] },
  {
    type: "A",
    name: "direct",
    content: "192.0.2.2",
    ttl: 300,
    comment: 'a "quoted" ${comment}; with \\ all',
  },
  { type: "A", name: "direct", content: "192.0.2.3", ttl: 300 },
  { type: "AAAA", name: "direct", content: "2001:db8::1", ttl: 600 },
  { type: "CNAME", name: "docs", content: "pages.example.net" },
  { type: "MX", name: "@", content: "mail.shop.example", priority: 10 },
  { type: "TXT", name: "@", content: '"v=spf1 include:_spf.example.net ~all"' },
  { type: "TXT", name: "odd", content: '"a \\"quote\\" and \\\\ and %{x} ${y}" "second"' },
  { type: "CAA", name: "@", data: { flags: 0, tag: "issue", value: "ca.example" } },
  {
    type: "SRV",
    name: "_sip._tcp",
    data: { priority: 1, weight: 2, port: 5060, target: "sip.shop.example" },
  },
  { type: "HTTPS", name: "svc", data: { priority: 1, target: ".", value: 'alpn="h2,h3"' } },
  { type: "NS", name: "sub", content: "ns.example.net" },
  { type: "A", name: "*.wild", content: "192.0.2.9" },
];

const mainCode = `import { WorkflowEntrypoint, DurableObject } from "cloudflare:workers";
import text from "./text.txt";
export class Flow extends WorkflowEntrypoint { async run() { return 1; } }
export class Room extends DurableObject {}
export default { fetch: () => new Response("hello " + text), scheduled() {}, queue() {} };`;

// oxlint-disable-next-line typescript/no-explicit-any
export type Made = (method: string, path: string, body?: unknown) => Promise<any>;

export const madeOn =
  (server: TestServer): Made =>
  async (method, path, body) => {
    const answer = await server.call(method, path, body);
    if (!answer.body.success) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body.errors)}`);
    return answer.body.result;
  };

/** Sends a form as the owner. */
export async function sendForm(
  server: TestServer,
  method: string,
  path: string,
  form: FormData,
): Promise<void> {
  const headers = { authorization: `Bearer ${ownerToken}` };
  const response = await fetch(`${server.ready.api}${path}`, { method, headers, body: form });
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
}

/** Makes something of every kind in the owner's account. */
export async function fillAccount(server: TestServer): Promise<{ zone: string }> {
  const made = madeOn(server);
  const inAccount = `/accounts/${server.ready.account_id}`;
  const zone = await fillZone(server, made);
  const kv = (await made("POST", `${inAccount}/storage/kv/namespaces`, { title: "settings / prod" }))
    .id as string;
  const values = `${inAccount}/storage/kv/namespaces/${kv}`;
  await made("PUT", `${values}/bulk`, [
    { key: "plain", value: "text" },
    { key: "a/b ü", value: "x", metadata: { n: 1 }, expiration: 4_000_000_000 },
    { key: "bytes", value: Buffer.from([0, 255, 254]).toString("base64"), base64: true },
  ]);
  const d1 = (await made("POST", `${inAccount}/d1/database`, { name: "orders" })).uuid as string;
  const dead = await made("POST", `${inAccount}/queues`, { queue_name: "dead" });
  const queue = await made("POST", `${inAccount}/queues`, {
    queue_name: "jobs",
    settings: { delivery_delay: 5 },
  });
  const namespace = `${inAccount}/workers/dispatch/namespaces`;
  await made("POST", namespace, { name: "customers" });
  const upload = async (path: string, given: ScriptUpload): Promise<void> =>
    sendForm(server, "PUT", path, uploadForm(given));
  const scripts = `${inAccount}/workers/scripts`;
  await upload(`${scripts}/back`, { code: "export default { fetch: () => new Response('back') };" });
  await upload(`${scripts}/front`, {
    code: { "index.js": mainCode, "text.txt": "there", "data.bin": new Uint8Array([0, 1, 255]) },
    bindings: [
      { type: "kv_namespace", name: "KV", namespace_id: kv },
      { type: "d1", name: "DB", id: d1 },
      { type: "queue", name: "JOBS", queue_name: "jobs" },
      { type: "plain_text", name: "TEXT", text: 'a "text"' },
      { type: "json", name: "JSON", json: { a: [1, null] } },
      { type: "secret_text", name: "SECRET", text: "hidden" },
      { type: "service", name: "BACK", service: "back" },
      { type: "durable_object_namespace", name: "ROOM", class_name: "Room" },
      { type: "dispatch_namespace", name: "CUSTOMERS", namespace: "customers" },
      { type: "images", name: "IMAGES" },
    ],
    metadata: {
      compatibility_flags: ["nodejs_compat"],
      migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] },
      tags: ["b", "a"],
      limits: { cpu_ms: 100 },
    },
  });
  // A circle: the scripts are bound to each other.
  await upload(`${scripts}/back`, {
    code: "export default { fetch: () => new Response('back') };",
    bindings: [{ type: "service", name: "FRONT", service: "front" }],
  });
  await made("PUT", `${scripts}/front/schedules`, [{ cron: "*/5 * * * *" }, { cron: "0 3 * * 1" }]);
  await upload(`${namespace}/customers/scripts/one`, {
    code: "export default { fetch: () => new Response('one') };",
    bindings: [{ type: "plain_text", name: "WHO", text: "one" }],
    metadata: { tags: ["plan:free"] },
  });
  await made("PUT", `${inAccount}/workflows/orders`, {
    script_name: "front",
    class_name: "Flow",
    schedules: [{ cron: "0 4 * * *" }],
  });
  await made("POST", `${inAccount}/queues/${queue.queue_id}/consumers`, {
    type: "worker",
    script_name: "front",
    dead_letter_queue: "dead",
    settings: { batch_size: 7 },
  });
  await made("POST", `${inAccount}/queues/${dead.queue_id}/consumers`, { type: "http_pull" });
  await made("POST", `/zones/${zone}/workers/routes`, { pattern: `www.${zoneName}/api/*`, script: "front" });
  await made("POST", `/zones/${zone}/workers/routes`, { pattern: `www.${zoneName}/static/*` });
  await made("PUT", `${inAccount}/workers/domains`, {
    hostname: `app.${zoneName}`,
    service: "front",
    zone_id: zone,
  });
  await fillImages(server, made, inAccount);
  return { zone };
}

async function fillZone(server: TestServer, made: Made): Promise<string> {
  const zone = await server.newZone(zoneName);
  await made("PUT", `/zones/${zone}/activation_check`);
  for (const record of records) await made("POST", `/zones/${zone}/dns_records`, record);
  await made("PATCH", `/zones/${zone}/settings`, {
    items: [
      { id: "ssl", value: "strict" },
      { id: "always_use_https", value: "on" },
    ],
  });
  await made("PATCH", `/zones/${zone}/argo/smart_routing`, { value: "on" });
  await made("PATCH", `/zones/${zone}/dns_settings`, { ns_ttl: 3600, soa: { min_ttl: 600 } });
  await made("PATCH", `/zones/${zone}/dnssec`, { status: "active" });
  await made("PUT", `/zones/${zone}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [
      {
        action: "route",
        expression: 'http.host eq "www.shop.example" and http.request.uri.path contains "\\"${x}"',
        action_parameters: { origin: { port: 8443 }, host_header: "origin.shop.example" },
        description: "to the\nsecond port",
      },
    ],
  });
  const snippet = new FormData();
  snippet.set("metadata", JSON.stringify({ main_module: "main.js" }));
  const code = "export default { fetch: (request) => fetch(request) }; // ${none} %{none}\n";
  snippet.set("files", new File([code], "main.js", { type: "application/javascript+module" }));
  await sendForm(server, "PUT", `/zones/${zone}/snippets/headers`, snippet);
  await made("PUT", `/zones/${zone}/snippets/snippet_rules`, {
    rules: [{ expression: "ssl", snippet_name: "headers", enabled: true, description: "all" }],
  });
  return zone;
}

async function fillImages(server: TestServer, made: Made, inAccount: string): Promise<void> {
  const variant = { fit: "cover", width: 10, height: 10, metadata: "none" };
  await made("POST", `${inAccount}/images/v1/variants`, { id: "thumb", options: variant });
  await made("PUT", `${inAccount}/images/v1/keys/links`);
  const picture = new Uint8Array(await pngOf(fourColors(16, 16)));
  for (const id of ["shoes/red", undefined]) {
    const form = new FormData();
    if (id !== undefined) form.set("id", id);
    form.set("metadata", JSON.stringify({ alt: "a shoe" }));
    form.set("requireSignedURLs", "true");
    form.set("file", new File([picture], "red.png"));
    await sendForm(server, "POST", `${inAccount}/images/v1`, form);
  }
}
