import { account, call, ensureNamespace, ensureRecord, ensureZone, uploadScript } from "../api.js";

/* Sets up the whole platform over the API. It keeps or replaces the parts that exist, so it can be run again. */
const zoneName = "shops.example";
const namespace = "shops";
const plans = {
  small: { name: "small", cpuMs: 20, subRequests: 4 },
  large: { name: "large", cpuMs: 200, subRequests: 50 },
};
const customers = { fern: plans.small, moss: plans.large };

const upload = (path, file, bindings, more = {}) =>
  uploadScript(account + path, new URL(file, import.meta.url), { bindings, ...more });

// The customers' plans. The dispatcher reads one on every request.
const planStore = await ensureNamespace("plans");
await call(
  "PUT",
  `${account}/storage/kv/namespaces/${planStore}/bulk`,
  Object.entries(customers).map(([key, plan]) => ({ key, value: JSON.stringify(plan) })),
);

// The customers' scripts. Each has its own key-value namespace.
const namespaces = await call("GET", `${account}/workers/dispatch/namespaces`);
if (!namespaces.some((each) => each.namespace_name === namespace))
  await call("POST", `${account}/workers/dispatch/namespaces`, { name: namespace });
for (const [customer, plan] of Object.entries(customers)) {
  const store = await ensureNamespace(`store of ${customer}`);
  await upload(
    `/workers/dispatch/namespaces/${namespace}/scripts/${customer}`,
    "customers/shop.js",
    [
      { type: "kv_namespace", name: "STORE", namespace_id: store },
      { type: "plain_text", name: "NAME", text: customer },
    ],
    { tags: [`plan-${plan.name}`] },
  );
}

// The platform's own scripts, and the route that leads to them.
await upload(`/workers/scripts/shops-outbound`, "platform/outbound.js", []);
await upload(`/workers/scripts/shops-dispatcher`, "platform/dispatcher.js", [
  { type: "kv_namespace", name: "PLANS", namespace_id: planStore },
  {
    type: "dispatch_namespace",
    name: "CUSTOMERS",
    namespace,
    outbound: { worker: { service: "shops-outbound" }, params: [{ name: "customer" }, { name: "plan" }] },
  },
]);
const zone = await ensureZone(zoneName);
const host = `*.${zoneName}`;
// There is no origin behind the scripts: the record only makes the edge serve the hosts.
await ensureRecord(zone, { type: "A", name: host, content: "192.0.2.1", proxied: true });
const pattern = `${host}/*`;
const routes = await call("GET", `/zones/${zone.id}/workers/routes`);
if (!routes.some((route) => route.pattern === pattern))
  await call("POST", `/zones/${zone.id}/workers/routes`, { pattern, script: "shops-dispatcher" });

for (const customer of Object.keys(customers)) console.log(`http://${customer}.${zoneName}/`);
