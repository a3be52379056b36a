import { upload } from "../images-lib.ts";
import { api, benchToken, type Started } from "./child.ts";
import { proxiedZone } from "./proxied-zone.ts";
import { load } from "./load.ts";

const connections = 16;

const customer = `export default { fetch() { return new Response("hello"); } };`;
const dispatcher = `export default { fetch: (request, env) => env.NS.get("hello").fetch(request) };`;
const snippet = `export default {
  async fetch(request) {
    const response = await fetch(request);
    const changed = new Response(response.body, response);
    changed.headers.set("x-from", "snippet");
    return changed;
  },
};`;
/** Responds once its workflow is complete. */
const workflow = `import { WorkflowEntrypoint } from "cloudflare:workers";
export class Flow extends WorkflowEntrypoint {
  async run(event, step) { for (let i = 0; i < 5; i++) await step.do("step " + i, async () => i); }
}
export default {
  async fetch(request, env) {
    const instance = await env.FLOW.create();
    for (;;) {
      const { status } = await instance.status();
      if (status === "complete") return new Response(status);
      if (status === "errored") return new Response(status, { status: 500 });
      await scheduler.wait(10);
    }
  },
};`;

export interface Kind {
  count: number;
  run: (count: number) => Promise<unknown>;
}

/** An installation with a zone, a snippet, scripts, a workflow and a picture, and the requests to each of them. */
export async function prepared(
  selvedge: Started,
  originPort: number,
  picture: Buffer,
): Promise<{ pid: number; kinds: Record<string, Kind>; stop(): Promise<void> }> {
  const { ready } = selvedge;
  const account = `/accounts/${ready.account_id}`;
  const zone = (name: string): Promise<string> => proxiedZone(ready, name, originPort);
  await zone("plain.example");
  const snippets = await zone("snippet.example");
  await put(ready, `/zones/${snippets}/snippets/headers`, "files", snippet, { main_module: "index.js" });
  await api(ready, "PUT", `/zones/${snippets}/snippets/snippet_rules`, {
    rules: [{ snippet_name: "headers", expression: "true", enabled: true }],
  });
  const namespaces = `${account}/workers/dispatch/namespaces`;
  await api(ready, "POST", namespaces, { name: "bench" });
  const metadata = (bindings: object[] = []): object => ({
    main_module: "index.js",
    compatibility_date: "2026-07-01",
    bindings,
  });
  const scripts = `${account}/workers/scripts`;
  await put(ready, `${namespaces}/bench/scripts/hello`, "index.js", customer, metadata());
  await put(ready, `${scripts}/alone`, "index.js", customer, metadata());
  const binding = { type: "dispatch_namespace", name: "NS", namespace: "bench" };
  await put(ready, `${scripts}/dispatcher`, "index.js", dispatcher, metadata([binding]));
  const flow = { type: "workflow", name: "FLOW", workflow_name: "flow", class_name: "Flow" };
  await put(ready, `${scripts}/flows`, "index.js", workflow, metadata([flow]));
  await api(ready, "PUT", `${account}/workflows/flow`, { script_name: "flows", class_name: "Flow" });
  const { subdomain } = await api<{ subdomain: string }>(ready, "GET", `${account}/workers/subdomain`);
  const visit =
    (host: string, path: string) =>
    (count: number): Promise<number> =>
      load(ready.edge, count, connections, () => ({ method: "GET", path, headers: { host } }));
  const { pathname: image, origin: images } = new URL(
    `${ready.delivery}/${ready.account_hash}/${await upload(ready, picture)}`,
  );
  let width = 200;
  const imageOf =
    (options: () => string) =>
    (count: number): Promise<number> =>
      load(images, count, connections, () => ({ method: "GET", path: `${image}/${options()}`, headers: {} }));
  const ofScript = (name: string): string => `${name}.${subdomain}.workers.localhost`;
  return {
    pid: selvedge.pid,
    stop: async () => selvedge.stop(),
    kinds: {
      "a proxied kilobyte": { count: 3000, run: visit("www.plain.example", "/1024") },
      "a snippet's kilobyte": { count: 2000, run: visit("www.snippet.example", "/1024") },
      "a script": { count: 2000, run: visit(ofScript("alone"), "/") },
      "a dispatched script": { count: 2000, run: visit(ofScript("dispatcher"), "/") },
      "a workflow of five steps": { count: 400, run: visit(ofScript("flows"), "/") },
      "an image from the cache": { count: 3000, run: imageOf(() => "w=160") },
      "an image that is made": { count: 40, run: imageOf(() => `w=${++width}`) },
    },
  };
}

async function put(
  ready: Started["ready"],
  path: string,
  part: string,
  code: string,
  metadata: object,
): Promise<void> {
  const form = new FormData();
  form.set("metadata", new Blob([JSON.stringify(metadata)], { type: "application/json" }));
  form.set(part, new File([code], "index.js", { type: "application/javascript+module" }));
  const response = await fetch(`${ready.api}${path}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${benchToken}` },
    body: form,
  });
  if (!response.ok) throw new Error(await response.text());
}
