import { createRequire } from "node:module";

/* A router and a customer joined by a service binding, as local Workers tools run them: without isolation or limits. */
interface Options {
  port: number;
  workers: object[];
}
type Miniflare = new (options: Options) => { ready: Promise<URL>; dispose(): Promise<void> };
const require = createRequire(import.meta.resolve("wrangler"));
const { Miniflare } = require("miniflare") as { Miniflare: Miniflare };

const router = `export default { async fetch(request, env) { new URL(request.url); try { return await env.CUSTOMER.fetch(request); } catch { return new Response("", { status: 404 }); } } };`;
const customer = `export default { fetch() { return new Response("hello"); } };`;
const worker = (name: string, source: string, env: object): object => ({
  config: {
    name,
    compatibilityDate: "2026-11-01",
    manifest: { mainModule: "index.js", modules: { "index.js": { type: "esm", contents: source } } },
    env,
  },
});
const miniflare = new Miniflare({
  port: 0,
  workers: [
    worker("router", router, { CUSTOMER: { type: "worker", worker: "customer" } }),
    worker("customer", customer, {}),
  ],
});
const { port } = await miniflare.ready;
process.stdout.write(port);
process.once("SIGTERM", () => void miniflare.dispose().then(() => process.exit(0)));
