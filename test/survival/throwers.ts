import { request as httpRequest } from "node:http";
import { WebSocket } from "ws";
import { startWorkflowHosting, type WorkflowHosting } from "../workflows/hosting.ts";
import { createZone } from "../snippets/example-platform.ts";
import { startOutside, type Outside } from "../runtime/platform.ts";
import { makeModule, type ThrownSpec } from "./thrown-values.ts";

/*
 * Every kind of handler that a script can throw from, at an early and a recent compatibility date, on a platform in this
 * process. Each throw must come to an end that the visitor, or the caller of the event, sees.
 */

export const dates = { early: "2021-11-02", recent: "2026-11-01" } as const;
export type DateName = keyof typeof dates;

const specOf = `const specOf = (request) => JSON.parse(decodeURIComponent(new URL(request.url).search.slice(1)));`;

const thrower = `
import { WorkerEntrypoint, RpcTarget } from "cloudflare:workers";
import { make } from "./make.js";
${specOf}
const routes = {
  throw(spec) { throw make(spec); },
  async rejects(spec) { await null; throw make(spec); },
  later(spec) { setTimeout(() => { throw make(spec); }, 1); return new Response("answered"); },
  floating(spec) { Promise.reject(make(spec)); return new Response("answered"); },
  waitUntil(spec, ctx) { ctx.waitUntil(Promise.reject(make(spec))); return new Response("answered"); },
  passes(spec, ctx) { ctx.passThroughOnException(); throw make(spec); },
  streams(spec) {
    return new Response(new ReadableStream({ pull(to) { to.enqueue(new Uint8Array(10)); to.error(make(spec)); } }));
  },
  returns(spec) { return make(spec); },
  logs(spec) { console.log(make(spec)); console.error("x", make(spec)); return new Response("logged"); },
  socket(spec) {
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    server.addEventListener("message", () => { throw make(spec); });
    return new Response(null, { status: 101, webSocket: client });
  },
};
const serve = (request, ctx) => routes[new URL(request.url).pathname.slice(1)](specOf(request), ctx);
export default {
  fetch: (request, env, ctx) => serve(request, ctx),
  scheduled(controller) { throw make(JSON.parse(controller.cron)); },
  queue(batch) { throw make(batch.messages[0].body); },
  tail(spec) { throw make(spec); },
};
export class Class extends WorkerEntrypoint {
  fetch(request) { return serve(request, this.ctx); }
  method(spec) { throw make(spec); }
  async slow(spec) { await null; throw make(spec); }
  get property() { throw make(JSON.parse(this.env.SPEC ?? '{"base":"half","fields":{}}')); }
  call(callback) { return callback(); }
  target(spec) { return new (class extends RpcTarget { method() { throw make(spec); } get value() { throw make(spec); } })(); }
}
`;

const caller = `
import { make } from "./make.js";
${specOf}
export default {
  async fetch(request, { OBJECT, CLASS }) {
    const { pathname } = new URL(request.url);
    const spec = specOf(request);
    const inner = new Request("http://inner/" + (request.headers.get("upgrade") ? "socket" : "throw") + new URL(request.url).search, request);
    const ways = {
      "object": () => OBJECT.fetch(inner),
      "class": () => CLASS.fetch(inner),
      "upgrade": () => OBJECT.fetch(new Request("http://inner/throw" + new URL(request.url).search, request)),
      "method": () => CLASS.method(spec),
      "slow": () => CLASS.slow(spec),
      "property": () => CLASS.property,
      "callback": () => CLASS.call(() => { throw make(spec); }),
      "target": async () => (await CLASS.target(spec)).method(),
      "target-value": async () => (await CLASS.target(spec)).value,
    };
    const result = await ways[pathname.slice(1)]();
    return result instanceof Response ? result : new Response("a result");
  },
};
`;

const dispatcher = `
export default { fetch: (request, { NS, TRUSTED }) => (new URL(request.url).hash, request.headers.get("x-trusted") ? TRUSTED : NS).get("customer").fetch(request) };
`;

const workflow = `
import { WorkflowEntrypoint } from "cloudflare:workers";
import { make } from "./make.js";
export class Main extends WorkflowEntrypoint {
  async run({ payload: { where, spec } }, step) {
    if (where === "run") throw make(spec);
    await step.do("throws", { retries: { limit: 1, delay: 1 } }, async () => { throw make(spec); });
  }
}
export default {};
`;

const snippet = (spec: string): string => `${makeModule.replaceAll("export ", "")}
${specOf}
export default { async fetch(request) {
  ${spec}
} };`;

/** The result of a throw: a status, an outcome in words, or "nothing in time". */
export type Outcome = string;
const outcomeMs = 30_000;

export class Throwers {
  readonly hosting: WorkflowHosting;
  readonly #outside: Outside;
  readonly #sockets: WebSocket[] = [];
  #instances = 0;

  private constructor(hosting: WorkflowHosting, outside: Outside) {
    this.hosting = hosting;
    this.#outside = outside;
  }

  static async start(): Promise<Throwers> {
    const hosting = await startWorkflowHosting({ privateNetworks: "all", logLevel: "silent" });
    const outside = await startOutside((_request, response) => response.end("origin"));
    const throwers = new Throwers(hosting, outside);
    await hosting.createNamespace("plain");
    await hosting.createNamespace("trusted", { trusted_workers: true });
    for (const name of Object.keys(dates) as DateName[]) await throwers.#deploy(name);
    const zone = async (domain: string, code: string): Promise<void> => {
      await createZone(hosting.ready.api, domain, outside.port, [{ name: "throws", code: snippet(code) }]);
    };
    await zone("snippet.example", "throw make(specOf(request));");
    await zone(
      "stream.example",
      "return new Response(new ReadableStream({ pull(to) { to.enqueue(new Uint8Array(10)); to.error(make(specOf(request))); } }));",
    );
    return throwers;
  }

  /** All kinds of tails. They get thrown values, too. */
  async watch(): Promise<void> {
    for (const date of Object.keys(dates))
      for (const script of ["thrower", "caller"]) {
        const path = `/accounts/${this.hosting.account}/workers/scripts/${script}-${date}/tails`;
        const { body } = await this.hosting.call("POST", path, JSON.stringify({ filters: [] }), {
          "content-type": "text/plain",
        });
        const socket = new WebSocket((body.result as { url: string }).url, "trace-v1");
        socket.on("error", () => {}).on("message", () => {});
        await new Promise((resolve) => socket.once("open", resolve));
        this.#sockets.push(socket);
      }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.terminate();
    await this.#outside.close();
    await this.hosting.close(0);
  }

  /** Kinds of handlers, and how to make each of them throw. */
  get kinds(): Record<string, (spec: ThrownSpec, date: DateName) => Promise<Outcome>> {
    const { hosting } = this;
    const visit =
      (script: string, path: string, headers: Record<string, string> = {}, method = "GET") =>
      async (spec: ThrownSpec, date: DateName): Promise<Outcome> =>
        this.#ask(hosting.hostOf(`${script}-${date}`), `/${path}`, spec, headers, method);
    const toSnippet = (host: string, method: string) => async (spec: ThrownSpec) =>
      this.#ask(host, "/", spec, {}, method);
    const upgrade = { upgrade: "websocket", connection: "upgrade" };
    const routes = [
      "throw",
      "rejects",
      "later",
      "floating",
      "waitUntil",
      "passes",
      "streams",
      "returns",
      "logs",
    ];
    const ways = ["object", "class", "method", "slow", "property", "callback", "target", "target-value"];
    const events = ["scheduled", "queue", "tail"];
    return {
      ...Object.fromEntries(routes.map((route) => [`fetch, ${route}`, visit("thrower", route)])),
      "fetch, with a body": visit("thrower", "throw", {}, "POST"),
      "fetch, upgrade": visit("thrower", "throw", upgrade),
      "WebSocket, message": async (spec, date) => this.#socket(`thrower-${date}`, "/socket", spec),
      ...Object.fromEntries(ways.map((way) => [`service binding, ${way}`, visit("caller", way)])),
      "service binding, upgrade": visit("caller", "upgrade", upgrade),
      "service binding, message": async (spec, date) => this.#socket(`caller-${date}`, "/object", spec),
      dispatched: visit("dispatcher", "throw"),
      "dispatched, watched": visit("dispatcher", "throw", { "x-trusted": "1" }),
      "dispatched, upgrade": visit("dispatcher", "throw", { ...upgrade, "x-trusted": "1" }),
      snippet: toSnippet("snippet.example", "GET"),
      "snippet, over HTTP": toSnippet("snippet.example", "POST"),
      "snippet, stream": toSnippet("stream.example", "GET"),
      ...Object.fromEntries(
        events.map((event) => [
          event,
          async (spec: ThrownSpec, date: DateName) => this.#invoke(event, spec, date),
        ]),
      ),
      "workflow, run": async (spec, date) => this.#workflow("run", spec, date),
      "workflow, step": async (spec, date) => this.#workflow("step", spec, date),
    };
  }

  async #deploy(date: DateName): Promise<void> {
    const { hosting } = this;
    const metadata = {
      compatibility_date: dates[date],
      compatibility_flags: date === "early" ? ["rpc", "streams_enable_constructors"] : [],
    };
    const upload = (code: string, bindings: Record<string, unknown>[] = []) => ({
      code: { "index.js": code, "make.js": makeModule },
      bindings,
      metadata,
    });
    const service = `thrower-${date}`;
    await hosting.deploy(service, upload(thrower));
    await hosting.deploy(
      `caller-${date}`,
      upload(caller, [
        { type: "service", name: "OBJECT", service },
        { type: "service", name: "CLASS", service, entrypoint: "Class" },
      ]),
    );
    for (const namespace of ["plain", "trusted"])
      await hosting.deployCustomer(namespace, "customer", upload(thrower));
    await hosting.deploy(
      `dispatcher-${date}`,
      upload(dispatcher, [
        { type: "dispatch_namespace", name: "NS", namespace: "plain" },
        { type: "dispatch_namespace", name: "TRUSTED", namespace: "trusted" },
      ]),
    );
    await hosting.deploy(`workflow-${date}`, upload(workflow));
    const { body } = await hosting.call("PUT", `/accounts/${hosting.account}/workflows/workflow-${date}`, {
      script_name: `workflow-${date}`,
      class_name: "Main",
    });
    if (!body.success) throw new Error(JSON.stringify(body.errors));
  }

  #ask(
    host: string,
    path: string,
    spec: ThrownSpec,
    headers: Record<string, string>,
    method: string,
  ): Promise<Outcome> {
    const upgrading =
      headers["upgrade"] === undefined
        ? {}
        : { "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
    return within((resolve) => {
      const outgoing = httpRequest(
        `${this.hosting.ready.edge}${path}?${queryOf(spec)}`,
        { method, headers: { host, ...headers, ...upgrading }, agent: false },
        (response) => {
          response.resume().on("error", () => {});
          response.on("close", () => resolve(String(response.statusCode)));
        },
      );
      outgoing.on("upgrade", (_response, socket) => {
        socket.destroy();
        resolve("101");
      });
      outgoing.on("error", (error) => resolve(`no status: ${error.message}`));
      outgoing.end(method === "POST" ? "a body" : undefined);
    });
  }

  #socket(script: string, path: string, spec: ThrownSpec): Promise<Outcome> {
    const socket = this.hosting.connect(script, `${path}?${queryOf(spec)}`);
    return within<Outcome>((resolve) => {
      socket.once("open", () => socket.send("now"));
      // A throwing listener does not close the connection.
      socket.once("open", () => setTimeout(() => socket.close(), 20));
      socket.once("close", (code) => resolve(`closed (${code})`));
      socket.once("error", (error) => resolve(error.message));
    }).finally(() => socket.terminate());
  }

  async #invoke(event: string, spec: ThrownSpec, date: DateName): Promise<Outcome> {
    const { scripts, runtime } = this.hosting.services;
    const owner = { accountId: this.hosting.account };
    const live = scripts.live(owner, `thrower-${date}`)!;
    const message = { id: "1", timestampMs: 0, attempts: 1, contentType: "json", body: JSON.stringify(spec) };
    const metrics = { backlogCount: 0, backlogBytes: 0, oldestMessageTimestampMs: 0 };
    const bodies: Record<string, object> = {
      scheduled: { cron: JSON.stringify(spec), scheduledTime: 0 },
      queue: { queue: "q", metrics, messages: [message] },
      tail: spec,
    };
    return within((resolve) => {
      runtime.invoke(owner, live, event, JSON.stringify(bodies[event])).then(
        (answer) => resolve(`answer ${Object.keys(answer as object).join(" ")}`),
        (error: unknown) => resolve(error instanceof Error ? error.constructor.name : "no error"),
      );
    });
  }

  async #workflow(where: string, spec: ThrownSpec, date: DateName): Promise<Outcome> {
    const id = `i${++this.#instances}`;
    const name = `workflow-${date}`;
    await this.hosting.create(name, id, { where, spec });
    return within((resolve, reject) => {
      this.hosting.end(name, id).then(({ status }) => resolve(status), reject);
    });
  }
}

const queryOf = (spec: ThrownSpec): string => encodeURIComponent(JSON.stringify(spec));

function within<T>(work: (resolve: (value: T) => void, reject: (error: Error) => void) => void): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("nothing in time")), outcomeMs);
    work((value) => {
      clearTimeout(timer);
      resolve(value);
    }, reject);
  });
}
