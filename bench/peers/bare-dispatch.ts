import { mkdtempSync, writeFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serveBareCell } from "../lib/bare-cell.ts";

/*
 * A minimal node:http proxy in front of one bare workerd, which runs the same isolates in the same order as Selvedge,
 * without accounting, limits or isolation between accounts. The first segment of the path says how far a request goes:
 * `/entry`, `/script` (one loaded script), `/dispatch` (a loaded dispatcher, then a loaded customer), `/cold/ID` (a new
 * script).
 */
const entry = `
import { WorkerEntrypoint } from "cloudflare:workers";
const date = "2026-11-01";
const code = (source, env) => () => ({ compatibilityDate: date, mainModule: "index.js", modules: { "index.js": source }, env, globalOutbound: null });
export class Dispatch extends WorkerEntrypoint {
  fetch(request) { return this.env.LOADER.get("customer", code(this.env.CUSTOMER, {})).getEntrypoint().fetch(request); }
}
export default { fetch(request, env, ctx) {
  const [, kind, id] = new URL(request.url).pathname.split("/");
  if (kind === "script") return env.LOADER.get("customer", code(env.CUSTOMER, {})).getEntrypoint().fetch(request);
  if (kind === "dispatch") return env.LOADER.get("dispatcher", code(env.DISPATCHER, { NS: ctx.exports.Dispatch({ props: {} }) })).getEntrypoint().fetch(request);
  if (kind === "cold") return env.LOADER.get(id, code(env.COLD.replaceAll("NAME", id), { TEXT: "of " + id })).getEntrypoint().fetch(request);
  return new Response("hello");
} };`;
const dispatcher = `export default { async fetch(request, env) { new URL(request.url); try { return await env.NS.fetch(request); } catch { return new Response("", { status: 404 }); } } };`;
const customer = `export default { fetch() { return new Response("hello"); } };`;
const cold = process.argv[2] ?? customer;

const quoted = (text: string): string => JSON.stringify(text);
const folder = mkdtempSync(join(tmpdir(), "bare-dispatch-"));
writeFileSync(join(folder, "ca.pem"), rootCertificates[0]!);
writeFileSync(
  join(folder, "config.capnp"),
  `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = (
    modules = [(name = "entry.js", esModule = ${quoted(entry)})],
    compatibilityDate = "2026-11-01", compatibilityFlags = ["experimental"],
    bindings = [(name = "LOADER", workerLoader = (id = "scripts")),
      (name = "DISPATCHER", text = ${quoted(dispatcher)}), (name = "CUSTOMER", text = ${quoted(customer)}), (name = "COLD", text = ${quoted(cold)})],
  ))],
  sockets = [(name = "main", address = "unix:cell.sock", service = "main", http = ())],
);`,
);
await serveBareCell(folder, "/entry", { SSL_CERT_FILE: "ca.pem" });
