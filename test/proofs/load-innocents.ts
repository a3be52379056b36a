import { Agent } from "node:http";
import { createZone } from "../snippets/example-platform.ts";
import type { Calls } from "../runtime/platform.ts";
import { ask, askSteadily } from "./load-clients.ts";

export interface Innocents {
  asked: number;
  failures: string[];
  tookMs: number[];
}

interface Innocent {
  host: string;
  path?: string;
  body?: string;
  answer: string;
}

const connectionsMax = 256;

/** Scripts, snippets and sites that do nothing wrong: of an account of their own, and customers of the greedy account. */
export class Neighbours {
  readonly #edge: string;
  readonly #all: Innocent[] = [];
  readonly #agent = new Agent({ keepAlive: true, maxSockets: connectionsMax });

  constructor(edge: string) {
    this.#edge = edge;
  }

  async deploy(
    calm: Calls,
    greedy: Calls,
    zones: { api: string; token: string },
    origin: number,
  ): Promise<void> {
    const outside = `http://127.0.0.1:${origin}`;
    const store = await calm.createKv("calm");
    const scripts: Record<string, string> = {
      hello: `return new Response("well");`,
      store: `await env.STORE.put("key", "well"); return new Response(await env.STORE.get("key"));`,
      fetching: `return new Response(await (await fetch("${outside}/well")).text());`,
      echo: `return new Response(await request.text());`,
      streaming: `return new Response(new Blob(["we", "ll"]).stream());`,
    };
    const bindings = [{ type: "kv_namespace", name: "STORE", namespace_id: store }];
    for (const [name, body] of Object.entries(scripts)) {
      await calm.deploy(name, { code: handler(body), bindings });
      this.#all.push({ host: calm.hostOf(name), answer: "well", ...(name === "echo" && { body: "well" }) });
    }
    await calm.deploy("calling", {
      code: handler("return env.NEXT.fetch(request);"),
      bindings: [{ type: "service", name: "NEXT", service: "hello" }],
    });
    this.#all.push({ host: calm.hostOf("calling"), answer: "well" });
    for (const host of [calm, greedy]) {
      await host.createNamespace("customers");
      await host.deploy("dispatcher", {
        code: handler("return env.NS.get(new URL(request.url).pathname.split('/')[1]).fetch(request);"),
        bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "customers" }],
      });
      for (const name of ["one", "two"])
        await host.deployCustomer("customers", name, handler(scripts["fetching"]!));
    }
    for (const path of ["/one", "/two"])
      this.#all.push({ host: calm.hostOf("dispatcher"), path, answer: "well" });
    const account = { id: calm.account };
    await createZone(zones.api, "site.example", origin, [], zones.token, account);
    const snippet =
      "export default { async fetch(request) { const answer = await fetch(request); return new Response(answer.body, answer); } };";
    await createZone(
      zones.api,
      "snippet.example",
      origin,
      [{ name: "passes", code: snippet }],
      zones.token,
      account,
    );
    for (const host of ["site.example", "snippet.example"])
      this.#all.push({ host, path: "/well", answer: "well" });
  }

  /** Adds a customer of the greedy account, whose other customers are the greedy ones. */
  addCustomer(greedy: Calls): void {
    this.#all.push({ host: greedy.hostOf("dispatcher"), path: "/one", answer: "well" });
  }

  removeCustomer(): void {
    this.#all.pop();
  }

  async ask(perSecond: number, signal: AbortSignal): Promise<Innocents> {
    const outcome: Innocents = { asked: 0, failures: [], tookMs: [] };
    await askSteadily(perSecond, signal, async (i) => {
      const innocent = this.#all[i % this.#all.length]!;
      const startedAt = performance.now();
      const answer = await ask({ ...innocent, edge: this.#edge, agent: this.#agent });
      outcome.asked++;
      outcome.tookMs.push(performance.now() - startedAt);
      if (answer.status !== 200 || answer.body !== innocent.answer)
        outcome.failures.push(
          `${innocent.host}${innocent.path ?? "/"}: ${answer.status} ${answer.body.slice(0, 250)}`,
        );
    });
    return outcome;
  }

  close(): void {
    this.#agent.destroy();
  }
}

const handler = (body: string): string => `export default { async fetch(request, env) { ${body} } };`;
