import { resolve } from "node:path";
import { photo, upload } from "./images-lib.ts";
import { api, benchToken, startPeer, startSelvedge, type Started } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import { atMost, median, printGoals, printTable, type Goal } from "./lib/measure.ts";
import { treeCpuMicroseconds } from "./lib/tree.ts";

/*
 * `node bench/paired.ts CHECKOUT [LAUNCHES [ROUNDS [KIND]]]`: CPU time of this checkout's requests beside another checkout's, in
 * rounds that alternate: through the proxy, through a snippet, to a script, to a customer's script, of workflows, and of images. CHECKOUT
 * is a folder with its dependencies installed, for example a worktree of the commit before. Both sides are started anew
 * LAUNCHES times, because a process keeps what V8 and the allocator decided in it: two launches of the same checkout differ
 * by up to 10 %. The result is the median of the launches.
 */
const [other, launchesText = "9", roundsText = "6", ...only] = process.argv.slice(2);
if (other === undefined) {
  process.stderr.write("Expected the folder of another checkout\n");
  process.exit(2);
}
const launches = Number(launchesText);
const rounds = Number(roundsText);
/** V8 compiles until about 18,000 requests. */
const warmUpRounds = Number(process.env["BENCH_WARM_UP"] ?? 8);
const ratioMax = 1.03;
const connections = 16;
const flags = ["--cells", "1", "--workflow-create-rate", "0", "--workflow-account-create-rate", "0"];

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
/** Answers when its workflow is complete. */
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

const origin = await startPeer("origin.ts");
const picture = await photo(1200, 900);
const launched = new Map<string, Measured[]>();
for (let launch = 0; launch < launches; launch++) {
  // The side that starts first alternates too.
  const start = {
    this: async () => prepared(await startSelvedge(flags)),
    other: async () => prepared(await startSelvedge(flags, undefined, resolve(other))),
  };
  const otherFirst = launch % 2 === 0 ? await start.other() : undefined;
  const sides = { this: await start.this(), other: otherFirst ?? (await start.other()) };
  for (const kind of Object.keys(sides.this.kinds)) {
    if (only.length > 0 && !only.some((part) => kind.includes(part))) continue;
    const measured = await measure(sides, kind);
    launched.set(kind, [...(launched.get(kind) ?? []), measured]);
    process.stderr.write(
      `launch ${launch + 1}: ${kind}: ${measured.ratio.toFixed(3)}, ` +
        `server ${measured.server.toFixed(3)}, cells ${measured.cells.toFixed(3)}\n`,
    );
  }
  for (const side of Object.values(sides)) await side.stop();
}
await origin.stop();

const goals: Goal[] = [];
const rows: (string | number)[][] = [];
for (const [kind, all] of launched) {
  const ratios = all.map(({ ratio }) => ratio).toSorted((a, b) => a - b);
  const spread = `${ratios[0]!.toFixed(3)} to ${ratios.at(-1)!.toFixed(3)}`;
  rows.push([kind, median(all.map((each) => each.this)), median(all.map((each) => each.other)), spread]);
  goals.push(atMost(`CPU, ${kind}, this / other`, median(ratios), ratioMax));
}
printTable(["CPU µs each", "this", "other", "ratio of the launches"], rows);
printGoals(goals);

interface Measured {
  /** CPU microseconds of a request. */
  this: number;
  other: number;
  /** The ratio of the sums. */
  ratio: number;
  /** How much of the difference the server's own process causes, and how much its cells; parts of `other`. */
  server: number;
  cells: number;
}

type Side = Awaited<ReturnType<typeof prepared>>;

/** Measures one kind of request at both sides of a launch. */
async function measure(sides: Record<"this" | "other", Side>, kind: string): Promise<Measured> {
  const cpu = { this: { own: 0, below: 0 }, other: { own: 0, below: 0 } };
  let requests = 0;
  for (let round = -warmUpRounds; round < rounds; round++) {
    const order = ["this", "other"] as const;
    for (const name of round % 2 === 0 ? order : order.toReversed()) {
      const { pid, kinds } = sides[name];
      const { count, run } = kinds[kind]!;
      const before = treeCpuMicroseconds(pid);
      await run(count);
      const after = treeCpuMicroseconds(pid);
      if (round < 0) continue; // warm-up
      cpu[name].own += after.own - before.own;
      cpu[name].below += after.below - before.below;
      requests += count / 2;
    }
  }
  const all = { this: cpu.this.own + cpu.this.below, other: cpu.other.own + cpu.other.below };
  return {
    this: all.this / requests,
    other: all.other / requests,
    ratio: all.this / all.other,
    server: (cpu.this.own - cpu.other.own) / all.other,
    cells: (cpu.this.below - cpu.other.below) / all.other,
  };
}

interface Kind {
  count: number;
  run: (count: number) => Promise<unknown>;
}

/** An installation with everything that is asked for. */
async function prepared(
  selvedge: Started,
): Promise<{ pid: number; kinds: Record<string, Kind>; stop(): Promise<void> }> {
  const { ready } = selvedge;
  const account = `/accounts/${ready.account_id}`;
  const zone = async (name: string): Promise<string> => {
    const { id } = await api<{ id: string }>(ready, "POST", "/zones", { name });
    const record = { type: "A", name: "www", content: "127.0.0.1", proxied: true, ttl: 1 };
    await api(ready, "POST", `/zones/${id}/dns_records`, record);
    await api(ready, "PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
      rules: [{ action: "route", expression: "true", action_parameters: { origin: { port: origin.port } } }],
    });
    return id;
  };
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
