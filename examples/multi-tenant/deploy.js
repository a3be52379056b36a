import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/*
 * Sets the whole platform up over the API; what is there already is kept or replaced, so it can be run again.
 * Needs CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID, and CLOUDFLARE_BASE_URL where it is not the default.
 */
const zoneName = "shops.example";
const namespace = "shops";
const plans = {
  small: { name: "small", cpuMs: 20, subRequests: 4 },
  large: { name: "large", cpuMs: 200, subRequests: 50 },
};
const customers = { fern: plans.small, moss: plans.large };

const {
  CLOUDFLARE_BASE_URL: api = "http://127.0.0.1:8787/client/v4",
  CLOUDFLARE_API_TOKEN: token,
  CLOUDFLARE_ACCOUNT_ID: accountId,
} = process.env;
if (!token || !accountId) throw new Error("Set CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID");
const account = `/accounts/${accountId}`;

async function call(method, path, body) {
  const isForm = body instanceof FormData;
  const response = await fetch(api + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(isForm || body === undefined ? {} : { "content-type": "application/json" }),
    },
    body: isForm || body === undefined ? body : JSON.stringify(body),
  });
  const { success, result, errors } = await response.json();
  if (!success)
    throw new Error(
      `${method} ${path}: ${errors.map(({ code, message }) => `${code} ${message}`).join("; ")}`,
    );
  return result;
}

const source = (file) => readFile(fileURLToPath(new URL(file, import.meta.url)), "utf8");

async function upload(path, file, bindings, more = {}) {
  const form = new FormData();
  const metadata = { main_module: "index.js", compatibility_date: "2026-11-01", bindings, ...more };
  form.set("metadata", new Blob([JSON.stringify(metadata)], { type: "application/json" }));
  form.set("index.js", new File([await source(file)], "index.js", { type: "application/javascript+module" }));
  await call("PUT", path, form);
}

async function keyValueNamespace(title) {
  const path = `${account}/storage/kv/namespaces`;
  const known = await call("GET", `${path}?per_page=1000`);
  return (known.find((each) => each.title === title) ?? (await call("POST", path, { title }))).id;
}

// The customers' plans, which the dispatcher looks up on every request.
const planStore = await keyValueNamespace("plans");
await call(
  "PUT",
  `${account}/storage/kv/namespaces/${planStore}/bulk`,
  Object.entries(customers).map(([key, plan]) => ({ key, value: JSON.stringify(plan) })),
);

// The customers' scripts, each with a key-value namespace of its own.
const namespaces = await call("GET", `${account}/workers/dispatch/namespaces`);
if (!namespaces.some((each) => each.namespace_name === namespace))
  await call("POST", `${account}/workers/dispatch/namespaces`, { name: namespace });
for (const [customer, plan] of Object.entries(customers)) {
  const store = await keyValueNamespace(`store of ${customer}`);
  await upload(
    `${account}/workers/dispatch/namespaces/${namespace}/scripts/${customer}`,
    "customers/shop.js",
    [
      { type: "kv_namespace", name: "STORE", namespace_id: store },
      { type: "plain_text", name: "NAME", text: customer },
    ],
    { tags: [`plan-${plan.name}`] },
  );
}

// The platform's own scripts, and the hosts that lead to them.
await upload(`${account}/workers/scripts/shops-outbound`, "platform/outbound.js", []);
await upload(`${account}/workers/scripts/shops-dispatcher`, "platform/dispatcher.js", [
  { type: "kv_namespace", name: "PLANS", namespace_id: planStore },
  {
    type: "dispatch_namespace",
    name: "CUSTOMERS",
    namespace,
    outbound: { worker: { service: "shops-outbound" }, params: [{ name: "customer" }, { name: "plan" }] },
  },
]);
const [zone = await call("POST", "/zones", { name: zoneName, account: { id: accountId }, type: "full" })] =
  await call("GET", `/zones?name=${zoneName}`);
const records = await call("GET", `/zones/${zone.id}/dns_records`);
const host = `*.${zoneName}`;
// There is no origin behind the scripts: the record only says that the edge serves the hosts.
if (!records.some(({ name }) => name === host))
  await call("POST", `/zones/${zone.id}/dns_records`, {
    type: "A",
    name: host,
    content: "192.0.2.1",
    proxied: true,
    ttl: 1,
  });
const pattern = `${host}/*`;
const routes = await call("GET", `/zones/${zone.id}/workers/routes`);
if (!routes.some((route) => route.pattern === pattern))
  await call("POST", `/zones/${zone.id}/workers/routes`, { pattern, script: "shops-dispatcher" });

for (const customer of Object.keys(customers)) console.log(`http://${customer}.${zoneName}/`);
