import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { text } from "node:stream/consumers";

/*
 * The calls that the examples share: the management API with `fetch`, and requests to the edge.
 * Needs CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID. Without CLOUDFLARE_BASE_URL and EDGE_URL it uses the
 * default addresses of `npm start`.
 */
const {
  CLOUDFLARE_BASE_URL: base = "http://127.0.0.1:8787/client/v4",
  CLOUDFLARE_API_TOKEN: token,
  CLOUDFLARE_ACCOUNT_ID: accountId,
  EDGE_URL: edge = "http://127.0.0.1:8080",
} = process.env;
if (!token || !accountId) throw new Error("Set CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID");

/** The path of the account, with which most paths begin. */
export const account = `/accounts/${accountId}`;

/** Calls the API and returns the `result` of the answer. Throws with the codes and messages of a failure. */
export async function call(method, path, body) {
  const isJson = body !== undefined && !(body instanceof FormData);
  const response = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(isJson ? { "content-type": "application/json" } : {}) },
    body: isJson ? JSON.stringify(body) : body,
  });
  const { success, result, errors } = await response.json();
  if (success) return result;
  const reasons = errors.map(({ code, message }) => `${code} ${message}`);
  throw new Error(`${method} ${path}: ${reasons.join("; ")}`);
}

/** Uploads a file as the only module of a script. `metadata` holds bindings and other properties of the script. */
export async function uploadScript(path, file, metadata = {}) {
  const form = new FormData();
  const all = { main_module: "index.js", compatibility_date: "2026-11-01", ...metadata };
  form.set("metadata", new Blob([JSON.stringify(all)], { type: "application/json" }));
  form.set(
    "index.js",
    new File([await readFile(file)], "index.js", { type: "application/javascript+module" }),
  );
  await call("PUT", path, form);
}

/** The zone of this name, which is created if it does not exist. */
export async function ensureZone(name) {
  const [zone] = await call("GET", `/zones?name=${name}`);
  return zone ?? call("POST", "/zones", { name, account: { id: accountId }, type: "full" });
}

/** Creates a DNS record unless the zone has one of the same type and name. */
export async function ensureRecord(zone, record) {
  const records = await call("GET", `/zones/${zone.id}/dns_records`);
  const exists = records.some(({ type, name }) => type === record.type && name === record.name);
  if (!exists) await call("POST", `/zones/${zone.id}/dns_records`, { ttl: 1, ...record });
}

/** The id of the key-value namespace with this title, which is created if it does not exist. */
export async function ensureNamespace(title) {
  const path = `${account}/storage/kv/namespaces`;
  const known = await call("GET", `${path}?per_page=1000`);
  return (known.find((each) => each.title === title) ?? (await call("POST", path, { title }))).id;
}

/** The host name under which the edge runs a script of the account. */
export async function hostOf(script) {
  const { subdomain } = await call("GET", `${account}/workers/subdomain`);
  return `${script}.${subdomain}.workers.localhost`;
}

/** Requests a path of any host from the edge. `fetch` cannot do this, because it does not send a chosen Host. */
export async function visit(host, path = "/", { method = "GET", headers = {}, body } = {}) {
  const outgoing = request(edge + path, { method, headers: { host, ...headers } });
  outgoing.end(body);
  const [response] = await once(outgoing, "response");
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}
