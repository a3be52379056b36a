import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fourColors, pngOf } from "../images/fixtures.ts";
import type { OpenConsole } from "./browser.ts";

/** The resources that the tests address by id. */
interface Data {
  zone: { id: string; name: string };
  queueId: string;
  namespaceId: string;
  /** The namespace of Durable Objects. */
  objectsId: string;
  /** Sends a request to the edge, as a visitor. */
  visit: (url: string) => Promise<Response>;
  /** Lets the quicker address of the origin of api.example end its connections without an answer. */
  breakPath: () => void;
}

/** A workflow with an attempt that fails, and with a wait that ends only by an event. */
const orders = `import { WorkflowEntrypoint } from "cloudflare:workers";
export class Order extends WorkflowEntrypoint {
  async run(event, step) {
    const price = await step.do("price", async () => ({ total: 6 * 7 }));
    await step.sleep("settle", 20);
    const delay = event.payload?.retryDelay ?? 10;
    await step.do("charge", { retries: { limit: 1, delay, backoff: "constant" } }, async () => {
      if (event.payload.card === "stolen") throw new Error("The card was refused");
      return "charged";
    });
    await step.waitForEvent("shipped", { type: "shipment", timeout: "7 days" });
    return price;
  }
}
export default { fetch: () => new Response("orders") };
`;

/** A script that logs, and throws for one path. */
const visits = `export default {
  fetch(request) {
    const { pathname } = new URL(request.url);
    console.log("visit of", pathname);
    if (pathname.endsWith("/broken")) throw new Error("The shelf is empty");
    if (pathname.endsWith("/spin")) for (;;);
    console.warn("almost sold out");
    return new Response("hello");
  },
};
`;

const shop = `create table articles (id integer primary key, name text not null, price real default 0);
create index articles_by_name on articles (name);
create view cheap as select * from articles where price < 10;
insert into articles (name, price) values ('Pen', 2.5), ('Chair', 80), ('Paper', 4);`;

/** A script whose objects count. */
const counter = `import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  async fetch() {
    this.ctx.storage.sql.exec("create table if not exists hits (page text, at integer)");
    this.ctx.storage.sql.exec("insert into hits values ('/', 1)");
    return new Response(String(this.ctx.storage.sql.exec("select count(*) as n from hits").one().n));
  }
}
export default {
  fetch: (request, env) => env.COUNTERS.get(env.COUNTERS.idFromName("front")).fetch(request),
};
`;

/** A dispatcher: the first part of the path names the customer. */
const dispatcher = `export default {
  fetch: (request, env) => env.CUSTOMERS.get(new URL(request.url).pathname.split("/")[2]).fetch(request),
};
`;

/** A form that uploads one module. */
export function scriptForm(code: string, metadata: object = {}): FormData {
  const form = new FormData();
  const common = { main_module: "index.js", compatibility_date: "2026-11-01" };
  form.set("metadata", JSON.stringify({ ...common, ...metadata }));
  form.set("index.js", new File([code], "index.js", { type: "application/javascript+module" }));
  return form;
}

/** A script that is a page, with a header and a redirect. */
async function makeSite({ call, platform }: OpenConsole): Promise<void> {
  const account = `/accounts/${platform.accountId}`;
  const page = "<h1>Shop</h1>";
  const hash = "0123456789abcdef0123456789abcdef";
  const { jwt } = await call<{ jwt: string }>(
    "POST",
    `${account}/workers/scripts/site/assets-upload-session`,
    { manifest: { "/index.html": { hash, size: page.length } } },
  );
  const form = new FormData();
  form.set(hash, new File([btoa(page)], hash, { type: "text/html" }));
  const response = await fetch(`${platform.urls.api}${account}/workers/assets/upload?base64=true`, {
    method: "POST",
    headers: { authorization: `Bearer ${jwt}` },
    body: form,
  });
  const uploaded = (await response.json()) as { result: { jwt: string } };
  const config = { _headers: "/*\n  X-Frame-Options: DENY", _redirects: "/old /new 301" };
  const assets = { jwt: uploaded.result.jwt, config };
  const script = new FormData();
  script.set("metadata", JSON.stringify({ compatibility_date: "2026-11-01", assets }));
  await call("PUT", `${account}/workers/scripts/site`, script);
}

/** A script with a workflow, a queue and a key-value namespace, with something in each. */
async function makeProducts({
  call,
  platform,
}: OpenConsole): Promise<Omit<Data, "zone" | "visit" | "breakPath">> {
  const account = `/accounts/${platform.accountId}`;
  await call("PUT", `${account}/workers/scripts/shop-orders`, scriptForm(orders));
  await call("PUT", `${account}/workers/scripts/shop-orders/secrets`, { name: "KEY", text: "hidden" });
  await call("PUT", `${account}/workers/scripts/shop-orders/schedules`, [{ cron: "0 6 * * *" }]);
  await call("PUT", `${account}/workers/scripts/visits`, scriptForm(visits.replace("almost ", "")));
  await call("PUT", `${account}/workers/scripts/visits`, scriptForm(visits));
  await call("PUT", `${account}/workflows/orders`, { script_name: "shop-orders", class_name: "Order" });
  const instances = `${account}/workflows/orders/instances`;
  await call("POST", `${instances}?wait=30`, { id: "refused", params: { card: "stolen" } });
  await call("POST", instances, { id: "waiting", params: { card: "visa" } });
  const { queue_id: queueId } = await call<{ queue_id: string }>("POST", `${account}/queues`, {
    queue_name: "mails",
  });
  await call("POST", `${account}/queues/${queueId}/messages`, { body: { to: "one@shop.example" } });
  const { id: namespaceId } = await call<{ id: string }>("POST", `${account}/storage/kv/namespaces`, {
    title: "settings",
  });
  const pairs = ["colour", "page:home", "page:about"].map((key) => ({ key, value: `value of ${key}` }));
  await call("PUT", `${account}/storage/kv/namespaces/${namespaceId}/bulk`, pairs);
  const script = {
    bindings: [{ type: "durable_object_namespace", name: "COUNTERS", class_name: "Counter" }],
    migrations: { new_tag: "v1", new_sqlite_classes: ["Counter"] },
  };
  await call("PUT", `${account}/workers/scripts/counter`, scriptForm(counter, script));
  const objects = `${account}/workers/durable_objects/namespaces`;
  const [{ id: objectsId }] = await call<[{ id: string }]>("GET", objects);
  const namespaces = `${account}/edge/dispatch/namespaces`;
  await call("POST", namespaces, { name: "customers" });
  for (const [name, tags] of [
    ["anna", ["gold"]],
    ["berta", ["trial"]],
    ["carla", ["trial"]],
  ] as const)
    await call("PUT", `${namespaces}/customers/scripts/${name}`, scriptForm(visits, { tags }));
  const bindings = [{ type: "dispatch_namespace", name: "CUSTOMERS", namespace: "customers" }];
  await call("PUT", `${account}/workers/scripts/dispatcher`, scriptForm(dispatcher, { bindings }));
  for (const [id, requireSignedURLs] of [
    ["logo", false],
    ["draft-of-a-poster", true],
  ] as const) {
    const form = new FormData();
    form.set(
      "file",
      new File([new Uint8Array(await pngOf(fourColors(64, 48)))], `${id}.png`, { type: "image/png" }),
    );
    form.set("id", id);
    form.set("requireSignedURLs", String(requireSignedURLs));
    await call("POST", `${account}/images/v1`, form);
  }
  await call("POST", `${account}/d1/database`, { name: "shop" });
  await call("POST", `${account}/d1/database/shop/query`, { sql: shop });
  return { queueId, namespaceId, objectsId };
}

/** Starts an origin with two addresses, of which the first one is slower. */
async function startOrigin(): Promise<{ port: number; breakPath: () => void }> {
  let isBroken = false;
  const origin = createServer(({ socket }, response) => {
    if (socket.localAddress === "127.0.0.1") setTimeout(() => response.end("app"), 25);
    else if (isBroken) socket.destroy();
    else setTimeout(() => response.end("app"), 2);
  });
  await once(origin.listen(0, "0.0.0.0"), "listening");
  origin.unref();
  return { port: (origin.address() as AddressInfo).port, breakPath: () => void (isBroken = true) };
}

/** A zone with smart routing, and traffic to both addresses of its origin. */
async function makePaths(
  { call, platform }: OpenConsole,
  { id, name }: Data["zone"],
): Promise<Pick<Data, "breakPath">> {
  for (const content of ["127.0.0.1", "127.0.0.2"])
    await call("POST", `/zones/${id}/dns_records`, { type: "A", name: "@", content, proxied: true });
  const { port, breakPath } = await startOrigin();
  await call("PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port } } }],
  });
  await call("PATCH", `/zones/${id}/edge/smart_routing`, { value: "on" });
  for (let i = 0; i < 40; i++) await platform.fetch(`https://${name}/`);
  return { breakPath };
}

/** Zones and products with content, as an installation in use has them. */
export async function makeData(console: OpenConsole): Promise<Data> {
  const { call, platform } = console;
  const account = { id: platform.accountId };
  const names = ["shop.example", "static.example", "api.example", "intern.example", "magazin.example"];
  const zones = await Promise.all(
    names.map(async (name) => call<{ id: string; name: string }>("POST", "/zones", { name, account })),
  );
  const zone = zones[0]!;
  const records = [
    { type: "A", name: "@", content: "192.0.2.10", proxied: true, comment: "the shop" },
    { type: "AAAA", name: "@", content: "2001:db8::10", proxied: true },
    { type: "CNAME", name: "www", content: "shop.example", proxied: true },
    { type: "A", name: "mail", content: "192.0.2.25", ttl: 3600 },
    { type: "MX", name: "@", content: "mail.shop.example", priority: 10 },
    { type: "TXT", name: "@", content: '"v=spf1 mx -all"' },
    { type: "TXT", name: "_dmarc", content: '"v=DMARC1; p=reject"' },
    { type: "CNAME", name: "status", content: "status.example.net", tags: ["team:ops"] },
    { type: "CAA", name: "@", data: { flags: 0, tag: "issue", value: "letsencrypt.org" } },
    {
      type: "SRV",
      name: "_sip._tcp",
      data: { priority: 10, weight: 5, port: 5060, target: "sip.shop.example" },
    },
    { type: "A", name: "*.preview", content: "192.0.2.77", proxied: true },
  ];
  for (const record of records) await call("POST", `/zones/${zone.id}/dns_records`, record);
  await call("PUT", `/zones/${zone.id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [
      {
        action: "route",
        description: "The API of the shop",
        expression: 'starts_with(http.request.uri.path, "/api/")',
        action_parameters: {
          origin: { host: "api.example.net", port: 8443 },
          host_header: "api.example.net",
        },
      },
      {
        action: "route",
        description: "Visitors from abroad",
        expression: 'ip.geoip.country ne "DE" and http.host eq "www.shop.example"',
        action_parameters: { origin: { host: "eu.example.net" } },
        enabled: false,
      },
    ],
  });
  await call("PATCH", `/zones/${zone.id}/edge/smart_routing`, { value: "on" });
  await call("PATCH", `/zones/${zone.id}/dnssec`, { status: "active" });
  // The zone has no outgoing transfer, although there is a peer.
  await call("POST", `/accounts/${account.id}/secondary_dns/peers`, { name: "second", ip: "192.0.2.53" });
  await call("POST", `/zones/${zone.id}/workers/routes`, { pattern: "shop.example/static/*" });
  const data = await makeProducts(console);
  await makeSite(console);
  const routes = `/zones/${zone.id}/workers/routes`;
  await call("POST", routes, { pattern: "shop.example/*", script: "visits" });
  await call("POST", routes, { pattern: "shop.example/count", script: "counter" });
  await call("POST", routes, { pattern: "shop.example/of/*", script: "dispatcher" });
  await platform.fetch("https://shop.example/count");
  for (const path of ["anna", "anna", "berta", "carla/broken"])
    await platform.fetch(`https://shop.example/of/${path}`);
  const paths = await makePaths(console, zones[2]!);
  await call("PATCH", `/zones/${zones[3]!.id}`, { paused: true });
  return { zone, visit: async (url) => platform.fetch(url), ...data, ...paths };
}
