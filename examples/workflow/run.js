import { account, call, uploadScript } from "../api.js";

/* Deploys the workflow, starts an instance, sends the event that it waits for, and prints its output. */
await uploadScript(`${account}/workers/scripts/shop-orders`, new URL("order.js", import.meta.url));
await call("PUT", `${account}/workflows/orders`, { script_name: "shop-orders", class_name: "Order" });

const instances = `${account}/workflows/orders/instances`;
const { id } = await call("POST", instances, { params: { item: "teapot", count: 6 } });
// An event that arrives before the instance waits for it is kept.
await call("POST", `${instances}/${id}/events/paid`, { card: "visa" });

// `wait` answers when the instance has ended, or after so many seconds.
const { status, output } = await call("GET", `${instances}/${id}/status?wait=30`);
console.log(status, JSON.stringify(output));
