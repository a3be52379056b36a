import { createHash } from "node:crypto";
import { ownerToken } from "./server.ts";

/** An answer of the API, in any form. */
export interface Answered {
  status: number;
  headers: Headers;
  text: string;
  // oxlint-disable-next-line typescript/no-explicit-any
  result: any;
  errors: { code: number; message: string }[];
}
export type Call = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<Answered>;

/** One kind of write. Each number makes another thing. */
export interface Write {
  kind: string;
  send: (n: number) => Promise<Answered>;
  /** The path of what was made, which answers 200 as long as it is there; undefined where a later write replaces it. */
  made?: (n: number, answer: Answered) => string;
}

/** Calls an API as its owner. A call without an answer within `timeoutMs` throws. */
export const callerOf =
  (api: string, timeoutMs?: number): Call =>
  async (method, path, body, headers = {}) => {
    const isOwn = body instanceof FormData || body instanceof Uint8Array || typeof body === "string";
    const response = await fetch(`${api}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${ownerToken}`,
        ...(isOwn || body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isOwn ? (body as string) : JSON.stringify(body) }),
      ...(timeoutMs === undefined ? {} : { signal: AbortSignal.timeout(timeoutMs) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    const envelope = (isJson ? JSON.parse(text) : {}) as Partial<Pick<Answered, "result" | "errors">>;
    const { result = null, errors = [] } = envelope;
    return { status: response.status, headers: response.headers, text, result, errors };
  };

/** A form with JSON metadata and one module. */
function codeForm(metadata: object, name: string, code: string): FormData {
  const form = new FormData();
  form.set("metadata", JSON.stringify(metadata));
  form.set(name, new File([code], name, { type: "application/javascript+module" }), name);
  return form;
}

/** An upload of a script of one module. */
export const scriptForm = (code: string, metadata: object = {}): FormData =>
  codeForm({ main_module: "main.mjs", compatibility_date: "2026-01-01", ...metadata }, "main.mjs", code);

function imageForm(png: Uint8Array): FormData {
  const form = new FormData();
  form.set("file", new File([png as Uint8Array<ArrayBuffer>], "a.png"));
  return form;
}

export const workflowCode = `import { WorkflowEntrypoint } from "cloudflare:workers";
export class Main extends WorkflowEntrypoint {
  async run(event, step) {
    const first = await step.do("first", async () => 1);
    await step.sleep("pause", event.payload?.sleep ?? "1 second");
    return first + await step.do("second", async () => 1);
  }
}
export default { fetch: () => new Response("hello") };`;

export interface Writes {
  writes: Write[];
  /** The path of the queue that messages go to, and of the workflow of the instances. */
  queue: string;
  workflow: string;
  script: string;
  /** The paths of the records of batches, and of the namespace of the values. */
  records: string;
  values: string;
}

/** Writes of every capability, on things that it makes beforehand. `largeBytes` is the size of values, images and assets. */
export async function everyWrite(
  call: Call,
  account: string,
  { png, largeBytes, prefix = "w" }: { png: Uint8Array; largeBytes: number; prefix?: string },
): Promise<Writes> {
  const make = async (method: string, path: string, body?: unknown): Promise<Answered> => {
    const answer = await call(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer;
  };
  const base = `/accounts/${account}`;
  const zone = (await make("POST", "/zones", { account: { id: account }, name: `${prefix}.example` })).result
    .id as string;
  await make("PATCH", `/zones/${zone}`, { plan: { id: "enterprise" } });
  const script = `${base}/workers/scripts/${prefix}-script`;
  await make("PUT", script, scriptForm(workflowCode));
  const namespace = (await make("POST", `${base}/storage/kv/namespaces`, { title: prefix })).result
    .id as string;
  const values = `${base}/storage/kv/namespaces/${namespace}`;
  const queue = (await make("POST", `${base}/queues`, { queue_name: `${prefix}-queue` })).result
    .queue_id as string;
  await make("POST", `${base}/queues/${queue}/consumers`, { type: "http_pull" });
  const workflow = `${base}/workflows/${prefix}-workflow`;
  await make("PUT", workflow, { script_name: `${prefix}-script`, class_name: "Main" });
  await make("POST", `${base}/workers/dispatch/namespaces`, { name: `${prefix}-customers` });
  const image = (await make("POST", `${base}/images/v1`, imageForm(png))).result.id as string;
  const large = (n: number): Buffer => Buffer.alloc(largeBytes, `content ${n} `);
  const policies = (): object[] => [
    {
      effect: "allow",
      resources: { [`com.cloudflare.api.account.${account}`]: "*" },
      permission_groups: [{ name: "Account Settings Read" }],
    },
  ];
  const asset = async (n: number): Promise<Answered> => {
    const content = large(n);
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 32);
    const session = await call("POST", `${script}/assets-upload-session`, {
      manifest: { "/large": { hash, size: content.length } },
    });
    if (session.status >= 300) return session;
    // Without buckets there is nothing to upload: it was taken before.
    const { jwt, buckets } = session.result as { jwt: string; buckets: string[][] };
    if (buckets.length === 0) return session;
    return call("POST", `${base}/workers/assets/upload/${hash}`, content, { authorization: `Bearer ${jwt}` });
  };
  /** Each of two in turn. */
  const turns = new Map<string, number>();
  const either = (one: string, other: string): string => {
    const turn = turns.get(one) ?? 0;
    turns.set(one, turn + 1);
    return turn % 2 === 0 ? one : other;
  };
  const writes: Write[] = [
    {
      kind: "account",
      send: (n) => call("POST", "/accounts", { name: `${prefix} ${n}` }),
      made: (_, { result }) => `/accounts/${result.id}`,
    },
    {
      kind: "token",
      send: (n) => call("POST", "/user/tokens", { name: `${prefix} ${n}`, policies: policies() }),
      made: (_, { result }) => `/user/tokens/${result.id}`,
    },
    {
      kind: "account token",
      send: (n) => call("POST", `${base}/tokens`, { name: `${prefix} ${n}`, policies: policies() }),
      made: (_, { result }) => `${base}/tokens/${result.id}`,
    },
    {
      kind: "zone",
      send: (n) => call("POST", "/zones", { account: { id: account }, name: `${prefix}-${n}.example` }),
      made: (_, { result }) => `/zones/${result.id}`,
    },
    {
      kind: "zone setting",
      send: () => call("PATCH", `/zones/${zone}/settings/ssl`, { value: either("full", "flexible") }),
    },
    {
      kind: "record",
      send: (n) =>
        call("POST", `/zones/${zone}/dns_records`, {
          type: "A",
          name: `r${n}`,
          content: "192.0.2.1",
          ttl: 60,
        }),
      made: (_, { result }) => `/zones/${zone}/dns_records/${result.id}`,
    },
    {
      kind: "record batch",
      send: (n) =>
        call("POST", `/zones/${zone}/dns_records/batch`, {
          posts: [1, 2, 3].map((i) => ({
            type: "TXT",
            name: `b${n}-${i}`,
            content: `"${"x".repeat(200)}"`,
            ttl: 60,
          })),
        }),
      made: (_, { result }) => `/zones/${zone}/dns_records/${result.posts[2].id}`,
    },
    { kind: "dns settings", send: (n) => call("PATCH", `/zones/${zone}/dns_settings`, { ns_ttl: 3600 + n }) },
    {
      kind: "dnssec",
      send: () => call("PATCH", `/zones/${zone}/dnssec`, { status: either("active", "disabled") }),
    },
    {
      kind: "transfer acl",
      send: (n) =>
        call("POST", `${base}/secondary_dns/acls`, { name: `${prefix} ${n}`, ip_range: "192.0.2.0/24" }),
      made: (_, { result }) => `${base}/secondary_dns/acls/${result.id}`,
    },
    {
      kind: "transfer tsig",
      send: (n) =>
        call("POST", `${base}/secondary_dns/tsigs`, {
          name: `k${n}.${prefix}.`,
          algo: "hmac-sha256.",
          secret: "c2VjcmV0",
        }),
      made: (_, { result }) => `${base}/secondary_dns/tsigs/${result.id}`,
    },
    {
      kind: "transfer peer",
      send: (n) => call("POST", `${base}/secondary_dns/peers`, { name: `${prefix} ${n}`, ip: "192.0.2.1" }),
      made: (_, { result }) => `${base}/secondary_dns/peers/${result.id}`,
    },
    {
      kind: "ruleset",
      send: (n) =>
        call("PUT", `/zones/${zone}/rulesets/phases/http_request_origin/entrypoint`, {
          rules: [
            {
              action: "route",
              action_parameters: { host_header: `h${n}.example` },
              expression: 'http.host eq "a"',
            },
          ],
        }),
    },
    {
      kind: "snippet",
      send: (n) =>
        call(
          "PUT",
          `/zones/${zone}/snippets/s${n % 5}`,
          codeForm(
            { main_module: "main.js" },
            "main.js",
            `export default { fetch: (r) => fetch(r) }; // ${n}`,
          ),
        ),
    },
    {
      kind: "smart routing",
      send: () => call("PATCH", `/zones/${zone}/argo/smart_routing`, { value: either("on", "off") }),
    },
    {
      kind: "script",
      send: (n) =>
        call("PUT", `${base}/workers/scripts/${prefix}-s${n}`, scriptForm(`${workflowCode} // ${n}`)),
      made: (n) => `${base}/workers/scripts/${prefix}-s${n}/settings`,
    },
    {
      kind: "secret",
      send: (n) => call("PUT", `${script}/secrets`, { name: `S${n}`, text: "secret", type: "secret_text" }),
    },
    { kind: "schedule", send: (n) => call("PUT", `${script}/schedules`, [{ cron: `${n % 60} 1 1 1 *` }]) },
    {
      kind: "route",
      send: (n) => call("POST", `/zones/${zone}/workers/routes`, { pattern: `p${n}.${prefix}.example/*` }),
      made: (_, { result }) => `/zones/${zone}/workers/routes/${result.id}`,
    },
    {
      kind: "customer's script",
      send: (n) =>
        call(
          "PUT",
          `${base}/workers/dispatch/namespaces/${prefix}-customers/scripts/c${n}`,
          scriptForm(workflowCode),
        ),
      made: (n) => `${base}/workers/dispatch/namespaces/${prefix}-customers/scripts/c${n}`,
    },
    {
      kind: "namespace of values",
      send: (n) => call("POST", `${base}/storage/kv/namespaces`, { title: `${prefix} ${n}` }),
      made: (_, { result }) => `${base}/storage/kv/namespaces/${result.id}`,
    },
    {
      kind: "small value",
      send: (n) => call("PUT", `${values}/values/small-${n}`, `value ${n}`),
      made: (n) => `${values}/values/small-${n}`,
    },
    {
      kind: "large value",
      send: (n) => call("PUT", `${values}/values/large-${n}`, large(n)),
      made: (n) => `${values}/values/large-${n}`,
    },
    {
      kind: "values in bulk",
      send: (n) =>
        call(
          "PUT",
          `${values}/bulk`,
          [1, 2].map((i) => ({ key: `bulk-${n}-${i}`, value: `${n}` })),
        ),
      made: (n) => `${values}/values/bulk-${n}-2`,
    },
    { kind: "asset", send: asset },
    {
      kind: "image",
      send: () =>
        call("POST", `${base}/images/v1`, imageForm(Buffer.concat([png, Buffer.alloc(largeBytes)]))),
      made: (_, { result }) => `${base}/images/v1/${result.id}/blob`,
    },
    { kind: "image metadata", send: (n) => call("PATCH", `${base}/images/v1/${image}`, { metadata: { n } }) },
    {
      kind: "direct upload",
      send: () => call("POST", `${base}/images/v2/direct_upload`),
      made: (_, { result }) => `${base}/images/v1/${result.id}`,
    },
    {
      kind: "image variant",
      send: (n) =>
        call("PATCH", `${base}/images/v1/variants/public`, {
          options: { fit: "cover", metadata: "none", width: n, height: 20 },
        }),
    },
    {
      kind: "workflow",
      send: (n) => call("PUT", `${workflow}-${n}`, { script_name: `${prefix}-script`, class_name: "Main" }),
      made: (n) => `${workflow}-${n}`,
    },
    {
      kind: "instance",
      send: (n) => call("POST", `${workflow}/instances`, { id: `i${n}` }),
      made: (n) => `${workflow}/instances/i${n}`,
    },
    {
      kind: "queue",
      send: (n) => call("POST", `${base}/queues`, { queue_name: `${prefix}-q${n}` }),
      made: (_, { result }) => `${base}/queues/${result.queue_id}`,
    },
    {
      kind: "message",
      send: (n) =>
        call("POST", `${base}/queues/${queue}/messages`, { body: `message ${n}`, content_type: "text" }),
    },
    { kind: "profile", send: (n) => call("PATCH", "/user", { first_name: `n${n}` }) },
  ];
  const records = `/zones/${zone}/dns_records`;
  return { writes, queue: `${base}/queues/${queue}`, workflow, script: `${prefix}-script`, records, values };
}

/** Bindings of a script to a KV namespace, the queue "jobs", and the workflow that `everyWrite` makes. */
export const bindingsToWrites = (namespace: string) => [
  { type: "kv_namespace", name: "KV", namespace_id: namespace },
  { type: "queue", name: "JOBS", queue_name: "jobs" },
  {
    type: "workflow",
    name: "FLOW",
    workflow_name: "w-workflow",
    class_name: "Main",
    script_name: "w-script",
  },
];
