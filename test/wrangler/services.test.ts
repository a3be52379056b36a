import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask } from "../scripts/harness.ts";
import { Project } from "./harness.ts";

/** wrangler deploys scripts with static assets, and one that is bound to all of them and to itself. */
let server: TestServer;
const projects: Project[] = [];
const timeout = 300_000;
const compatibility_date = "2025-04-01";

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  for (const project of projects) project.remove();
  await server.close(1000);
});

async function deploy(name: string, config: object, files: Record<string, string>): Promise<void> {
  const project = new Project(server);
  projects.push(project);
  const wrangler = { name, main: "src/index.ts", compatibility_date, ...config };
  project.write({ "wrangler.json": wrangler, ...files });
  await project.run(["deploy"]);
}
const assets = (name: string): Record<string, string> => ({
  "public/index.html": `asset of ${name}`,
  "public/busy.html": `busy asset of ${name}`,
});
const withAssets = { assets: { directory: "public" } };

it(
  "over them it gets assets, answers, values, methods and WebSockets",
  async () => {
    await deploy("object", withAssets, {
      ...assets("object"),
      "src/index.ts": `
        const pets = "cats";
        export default {
          pets,
          get sound() { return "purr"; },
          async fetch() { return new Response("object fetched"); },
          greet(name: string) { return "hello " + name; },
          async open(text: string) { return { inner: { say: () => "you said " + text } }; },
          async scheduled() { console.log("scheduled"); },
        };`,
    });
    await deploy("class", withAssets, {
      ...assets("class"),
      "src/index.ts": `
        import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
        class Counter extends RpcTarget {
          #value = 0;
          add(by: number) { return (this.#value += by); }
          get value() { return this.#value; }
        }
        export default class extends WorkerEntrypoint {
          #sound = "woof";
          get sound() { return this.#sound; }
          async fetch() { return new Response("class fetched"); }
          nothing() { return "nothing asked"; }
          async counter() { return new Counter(); }
        }
        export class Named extends WorkerEntrypoint {
          get sound() { return "moo"; }
          async fetch() { return new Response("named fetched"); }
          greet(name: string) { return "named hello " + name; }
        }`,
    });
    await deploy("sockets", withAssets, {
      ...assets("sockets"),
      "src/index.ts": `
        import { WorkerEntrypoint } from "cloudflare:workers";
        export default class extends WorkerEntrypoint {
          fetch(request: Request) {
            if (request.headers.get("upgrade") !== "websocket") return new Response("sockets fetched");
            const { 0: client, 1: server } = new WebSocketPair();
            server.accept();
            server.addEventListener("message", ({ data }) => { server.send("pong " + data); server.close(); });
            return new Response(null, { status: 101, webSocket: client });
          }
        }`,
    });
    const services = [
      { binding: "OBJECT", service: "object" },
      { binding: "CLASS", service: "class" },
      { binding: "NAMED", service: "class", entrypoint: "Named" },
      { binding: "SOCKETS", service: "sockets" },
      { binding: "SELF", service: "caller" },
    ];
    await deploy(
      "caller",
      { services, compatibility_flags: ["nodejs_compat"] },
      {
        "src/index.ts": `
        const start = Object.keys(process.env);
        const text = async (response: Promise<Response>) => (await response).text();
        async function pong(service: Fetcher, url: string) {
          const { webSocket } = await service.fetch(new Request(url, { headers: { upgrade: "websocket" } }));
          webSocket!.accept();
          const answer = new Promise((resolve) => webSocket!.addEventListener("message", ({ data }) => resolve(data)));
          webSocket!.send("ping");
          return answer;
        }
        export default {
          own: "of its own",
          async fetch(request: Request, env: any) {
            // Not "using": the esbuild of wrangler 3 cannot parse it.
            const open = env.OBJECT.open("so");
            const counter = env.CLASS.counter();
            await counter.add(2);
            const answer = Response.json({
              start,
              object: [await text(env.OBJECT.fetch(request)), await env.OBJECT.pets, await env.OBJECT.sound, await env.OBJECT.greet("you"), await open.inner.say(), (await env.OBJECT.scheduled({ cron: "* * * * *" })) ?? null],
              class: [await text(env.CLASS.fetch(request)), await env.CLASS.sound, await env.CLASS.nothing(), await counter.value],
              named: [await text(env.NAMED.fetch(request)), await env.NAMED.sound, await env.NAMED.greet("you")],
              sockets: [await text(env.SOCKETS.fetch(request)), await pong(env.SOCKETS, new URL("/none", request.url).href)],
              self: await env.SELF.own,
            });
            open[Symbol.dispose]();
            counter[Symbol.dispose]();
            return answer;
          },
        };`,
      },
    );
    const rest = {
      start: [],
      named: ["named fetched", "moo", "named hello you"],
      self: "of its own",
    };
    const values = {
      object: ["cats", "purr", "hello you", "you said so", null],
      class: ["woof", "nothing asked", 2],
      sockets: ["pong ping"],
    };
    for (const [path, first] of [
      ["/", (name: string) => `asset of ${name}`],
      ["/busy", (name: string) => `busy asset of ${name}`],
      ["/none", (name: string) => `${name} fetched`],
    ] as const) {
      const { body } = await ask(server, "caller", path);
      const all = Object.entries(values).map(([name, list]) => [name, [first(name), ...list]]);
      expect(JSON.parse(body), path).toEqual({ ...rest, ...Object.fromEntries(all) });
    }
  },
  timeout,
);
