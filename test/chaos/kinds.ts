import { createHash } from "node:crypto";
import type { Answered, Call } from "../helpers/writes.ts";
import { scriptForm } from "../helpers/writes.ts";
import { fourColors, pngOf } from "../images/fixtures.ts";
import {
  bytesOfEdge,
  exactly,
  isSaying,
  readOfApi,
  recordsOf,
  textOf,
  textSeen,
  visitSeen,
} from "./reads.ts";
import type { Kind } from "./thing.ts";

/** The resources of all kinds, made once before the disturbances. */
export interface Ground {
  account: string;
  accountHash: string;
  subdomain: string;
  zone: string;
  namespace: string;
  originPort: number;
}
const zoneName = "chaos.example";
const largeBytes = 300_000;
const dispatchNamespace = "chaos";
const variant = "small";

/** A step of a creation got another answer than success. */
export class Refused extends Error {
  readonly answer: Answered;
  constructor(answer: Answered) {
    super(`${answer.status} ${answer.text.slice(0, 300)}`);
    this.answer = answer;
  }
}

async function done(answering: Promise<Answered>): Promise<Answered> {
  const answer = await answering;
  if (answer.status >= 300) throw new Refused(answer);
  return answer;
}

const upload = (metadata: object, name: string, code: string): FormData => {
  const form = new FormData();
  form.set("metadata", JSON.stringify(metadata));
  form.set(name, new File([code], name, { type: "application/javascript+module" }), name);
  return form;
};

export async function prepare(
  call: Call,
  account: string,
  originPort: number,
): Promise<Omit<Ground, "accountHash">> {
  const base = `/accounts/${account}`;
  const id = (await done(call("POST", "/zones", { account: { id: account }, name: zoneName }))).result
    .id as string;
  const { result: kv } = await done(call("POST", `${base}/storage/kv/namespaces`, { title: "chaos" }));
  await done(call("POST", `${base}/workers/dispatch/namespaces`, { name: dispatchNamespace }));
  const dispatcher = scriptForm(
    `export default { fetch: (request, env) => env.ALL.get(new URL(request.url).pathname.slice(1)).fetch(request) };`,
    { bindings: [{ type: "dispatch_namespace", name: "ALL", namespace: dispatchNamespace }] },
  );
  await done(call("PUT", `${base}/workers/scripts/dispatcher`, dispatcher));
  const reader = scriptForm(
    `export default { async fetch(request, env) {
      const value = await env.KV.get(new URL(request.url).pathname.slice(1), "stream");
      return new Response(value, { status: value === null ? 404 : 200 });
    } };`,
    { bindings: [{ type: "kv_namespace", name: "KV", namespace_id: kv.id }] },
  );
  await done(call("PUT", `${base}/workers/scripts/reader`, reader));
  const options = { fit: "cover", width: 32, height: 24, metadata: "none" };
  await done(call("POST", `${base}/images/v1/variants`, { id: variant, options }));
  const { subdomain } = (await done(call("GET", `${base}/workers/subdomain`))).result as {
    subdomain: string;
  };
  return { account, subdomain, zone: id, namespace: kv.id as string, originPort };
}

/** A zone of its own for one thing, with a proxied name. */
async function newZone(account: string, host: string, call: Call): Promise<{ id: string; host: string }> {
  const { id } = (await done(call("POST", "/zones", { account: { id: account }, name: host }))).result as {
    id: string;
  };
  const record = { type: "A", name: "@", content: "127.0.0.1", proxied: true, ttl: 1 };
  await done(call("POST", `/zones/${id}/dns_records`, record));
  return { id, host };
}

export function kindsOf(ground: Ground): Kind[] {
  return [...configuration(ground), ...code(ground), ...values(ground), ...pictures(ground)];
}

function configuration({ account, zone, originPort }: Ground): Kind[] {
  return [
    {
      name: "record",
      async make(n, call) {
        const name = `record-${n}`;
        const body = (version: number): object => ({
          type: "TXT",
          name: `${name}.${zoneName}`,
          content: `"v${version}"`,
          ttl: 60,
        });
        const path = `/zones/${zone}/dns_records`;
        const { id } = (await done(call("POST", path, body(1)))).result as { id: string };
        return {
          name,
          write: (version, by) => by("PATCH", `${path}/${id}`, body(version)),
          channels: [
            readOfApi(`${path}/${id}`, ({ content }) => exactly(/^"v(\d+)"$/, content)),
            recordsOf(`${name}.${zoneName}`, "TXT", ({ data }) => exactly(/^v(\d+)$/, String(data))),
          ],
        };
      },
    },
    {
      name: "DNS settings",
      async make(n, call) {
        const { id, host } = await newZone(account, `settings-${n}.example`, call);
        const path = `/zones/${id}/dns_settings`;
        const write = (version: number, by: Call): Promise<Answered> =>
          by("PATCH", path, { ns_ttl: 3600 + version });
        await done(write(1, call));
        const ofTtl = (ttl: number): ReturnType<typeof isSaying> =>
          isSaying((version) => ttl === (version === 0 ? 86_400 : 3600 + version), `TTL ${ttl}`);
        return {
          name: host,
          write,
          channels: [
            readOfApi(path, ({ ns_ttl }) => ofTtl(ns_ttl as number)),
            recordsOf(host, "NS", ({ ttl }) => ofTtl(ttl)),
          ],
        };
      },
    },
    {
      name: "ruleset",
      async make(n, call) {
        const { id, host } = await newZone(account, `rules-${n}.example`, call);
        const path = `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`;
        const write = (version: number, by: Call): Promise<Answered> => {
          const action_parameters = { host_header: `v${version}.${host}`, origin: { port: originPort } };
          return by("PUT", path, { rules: [{ action: "route", expression: "true", action_parameters }] });
        };
        await done(write(1, call));
        const pattern = new RegExp(`^v(\\d+)\\.${host}$`);
        return {
          name: host,
          write,
          channels: [
            readOfApi(path, ({ rules }) => exactly(pattern, rules[0].action_parameters.host_header)),
            visitSeen("edge", host, "/", (body) => exactly(pattern, body)),
          ],
        };
      },
    },
    {
      name: "token",
      async make(n, call) {
        const policies = [
          {
            effect: "allow",
            resources: { [`com.cloudflare.api.account.${account}`]: "*" },
            permission_groups: [{ name: "Account Settings Read" }],
          },
        ];
        const body = { name: `token-${n}`, policies };
        const { id, value } = (await done(call("POST", "/user/tokens", body))).result as Record<
          string,
          string
        >;
        const statusOf = (version: number): string => (version % 2 === 1 ? "active" : "disabled");
        return {
          name: `token-${n}`,
          write: (version, by) => by("PUT", `/user/tokens/${id}`, { ...body, status: statusOf(version) }),
          channels: [
            readOfApi(`/user/tokens/${id}`, ({ status }) =>
              isSaying((version) => version > 0 && statusOf(version) === status, status as string),
            ),
            {
              name: "used",
              async read(_, by) {
                const answer = await by("GET", "/user/tokens/verify", undefined, {
                  authorization: `Bearer ${value}`,
                });
                if (answer.status >= 500) return undefined;
                const isActive = answer.status === 200 && answer.result.status === "active";
                return isSaying((version) => (version % 2 === 1) === isActive, answer.text.slice(0, 100));
              },
            },
          ],
        };
      },
    },
  ];
}

function code({ account, subdomain }: Ground): Kind[] {
  const base = `/accounts/${account}`;
  const hostOf = (script: string): string => `${script}.${subdomain}.workers.localhost`;
  /** The completion token of one asset. */
  const sendAsset = async (script: string, content: string, call: Call): Promise<Answered> => {
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 32);
    const manifest = { "/content.txt": { hash, size: content.length } };
    const session = await call("POST", `${base}/workers/scripts/${script}/assets-upload-session`, {
      manifest,
    });
    if (session.status >= 300 || session.result.buckets.length === 0) return session;
    const authorization = `Bearer ${session.result.jwt}`;
    const form = new FormData();
    form.append(hash, Buffer.from(content).toString("base64"));
    return call("POST", `${base}/workers/assets/upload?base64=true`, form, { authorization });
  };
  return [
    {
      name: "snippet",
      async make(n, call) {
        const { id, host } = await newZone(account, `snippet-${n}.example`, call);
        const write = (version: number, by: Call): Promise<Answered> => {
          const text = JSON.stringify(textOf(host, version, 200));
          const module = `export default { fetch: () => new Response(${text}) };`;
          return by("PUT", `/zones/${id}/snippets/only`, upload({ main_module: "a.js" }, "a.js", module));
        };
        await done(write(1, call));
        const rules = [{ snippet_name: "only", expression: "true", enabled: true }];
        await done(call("PUT", `/zones/${id}/snippets/snippet_rules`, { rules }));
        return { name: host, write, channels: [visitSeen("edge", host, "/", textSeen(host))] };
      },
    },
    {
      name: "script with an asset",
      async make(n, call) {
        const name = `script-${n}`;
        const write = async (version: number, by: Call): Promise<Answered> => {
          const asset = await sendAsset(name, textOf(`${name}-asset`, version, 60_000), by);
          if (asset.status >= 300) return asset;
          const text = JSON.stringify(textOf(name, version, 200));
          const module = `export default { async fetch(request, env) {
            const asset = await env.ASSETS.fetch(new URL("/content.txt", request.url));
            return asset.status === 200 ? new Response(${text} + (await asset.text())) : asset;
          } };`;
          const bindings = [{ type: "assets", name: "ASSETS" }];
          const assets = { jwt: asset.result.jwt };
          return by("PUT", `${base}/workers/scripts/${name}`, scriptForm(module, { assets, bindings }));
        };
        await done(write(1, call));
        const both = (body: string): ReturnType<typeof isSaying> => {
          const [own, asset] = [
            textSeen(name)(body.slice(0, 200)),
            textSeen(`${name}-asset`)(body.slice(200)),
          ];
          return isSaying(
            (version) => own.isOf(version) && asset.isOf(version),
            `${own.text}, ${asset.text}`,
          );
        };
        return {
          name,
          write,
          channels: [
            visitSeen("edge", hostOf(name), "/", both),
            visitSeen("asset", hostOf(name), "/content.txt", textSeen(`${name}-asset`)),
          ],
        };
      },
    },
    {
      name: "customer's script",
      async make(n, call) {
        const name = `customer-${n}`;
        const path = `${base}/workers/dispatch/namespaces/${dispatchNamespace}/scripts/${name}`;
        const write = (version: number, by: Call): Promise<Answered> => {
          const text = JSON.stringify(textOf(name, version, 200));
          return by("PUT", path, scriptForm(`export default { fetch: () => new Response(${text}) };`));
        };
        await done(write(1, call));
        return {
          name,
          write,
          channels: [visitSeen("dispatched", hostOf("dispatcher"), `/${name}`, textSeen(name))],
        };
      },
    },
  ];
}

function values({ account, namespace, subdomain }: Ground): Kind[] {
  const kind = (title: string, key: string, bytes: number): Kind => ({
    name: title,
    async make(n, call) {
      const name = `${key}-${n}`;
      const path = `/accounts/${account}/storage/kv/namespaces/${namespace}/values/${name}`;
      const write = (version: number, by: Call): Promise<Answered> =>
        by("PUT", path, textOf(name, version, bytes));
      await done(write(1, call));
      return {
        name,
        write,
        channels: [
          {
            name: "API",
            async read(_, by) {
              const { status, text } = await by("GET", path);
              if (status === 404) return isSaying((version) => version === 0, "404");
              return status === 200 ? textSeen(name)(text) : undefined;
            },
          },
          visitSeen("binding", `reader.${subdomain}.workers.localhost`, `/${name}`, textSeen(name)),
        ],
      };
    },
  });
  return [kind("small value", "small", 300), kind("large value", "large", largeBytes)];
}

function pictures({ account, accountHash }: Ground): Kind[] {
  const base = `/accounts/${account}/images/v1`;
  /** The bytes that each node has delivered for an image, which must be the same each time. */
  const delivered = new Map<string, string>();
  return [
    {
      name: "image",
      async make(n, call) {
        const png = Buffer.concat([await pngOf(fourColors(64 + (n % 50), 48)), Buffer.from(`image ${n}`)]);
        const form = new FormData();
        form.set("file", new File([new Uint8Array(png)], "a.png"));
        form.set("metadata", JSON.stringify({ version: 1 }));
        const { id } = (await done(call("POST", base, form))).result as { id: string };
        return {
          name: `image-${n}`,
          write: (version, by) => by("PATCH", `${base}/${id}`, { metadata: { version } }),
          channels: [
            readOfApi(`${base}/${id}`, ({ meta }) => exactly(/^(\d+)$/, String(meta.version))),
            bytesOfEdge(
              "original",
              (node) => `${node.ready.api}${base}/${id}/blob`,
              (bytes) => bytes.equals(png),
            ),
            bytesOfEdge(
              "delivered",
              ({ ready }) => `${ready.edge}/cdn-cgi/imagedelivery/${accountHash}/${id}/${variant}`,
              (bytes) => {
                const digest = createHash("sha256").update(bytes).digest("hex");
                if (!delivered.has(id)) delivered.set(id, digest);
                return delivered.get(id) === digest;
              },
            ),
          ],
        };
      },
    },
    {
      name: "image variant",
      async make(n, call) {
        const id = `variant${n}`;
        const body = (version: number): object => ({
          options: { fit: "cover", width: 100 + version, height: 20, metadata: "none" },
        });
        await done(call("POST", `${base}/variants`, { id, ...body(1) }));
        return {
          name: id,
          write: (version, by) => by("PATCH", `${base}/variants/${id}`, body(version)),
          channels: [
            readOfApi(`${base}/variants/${id}`, (result) => {
              const { width } = result.variant.options as { width: number };
              return isSaying((version) => version > 0 && width === 100 + version, `width ${width}`);
            }),
          ],
        };
      },
    },
  ];
}
