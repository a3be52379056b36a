import { afterAll, beforeAll, beforeEach } from "vitest";
import { startHosting, startOutside, type Hosting, type Outside, type ScriptUpload } from "../platform.ts";

/**
 * An installation for hostile customers. It allows requests to this machine, so that there is a target; but
 * an outbound script blocks all of them, so any request that reaches the target has bypassed it.
 */
export interface Prison {
  hosting: Hosting;
  outside: Outside;
  /** The result of a hostile customer's code. */
  hostile(body: string, more?: Partial<ScriptUpload> & { top?: string }): Promise<unknown>;
  /** The result of an innocent customer. */
  innocent(): Promise<unknown>;
  close(): Promise<void>;
}

/** The result of `innocent` when nothing has harmed it. */
export const unharmed = ["of the victim", "undefined", "undefined"];

/** An installation for the tests of a file; the record of the target is cleared before each. */
export function usePrison(): Prison {
  const prison = {} as Prison;
  beforeAll(async () => void Object.assign(prison, await startPrison()));
  beforeEach(() => {
    prison.outside.seen.length = 0;
  });
  afterAll(async () => prison.close());
  return prison;
}

async function startPrison(): Promise<Prison> {
  const hosting = await startHosting({ privateNetworks: "all" });
  const outside = await startOutside((request, response) => {
    response.setHeader("x-selvedge-error", "forged");
    response.setHeader("x-selvedge-outcome", "forged");
    response.end(JSON.stringify(request.headers));
  });
  const secrets = await hosting.createKv("secrets", { password: "of the victim" });
  await hosting.createNamespace("prison");
  await hosting.deploy("wall", `export default { fetch: () => new Response("walled", { status: 403 }) };`);
  await hosting.deploy("dispatcher", {
    code: `export default { async fetch(request, env) {
      const [, name] = new URL(request.url).pathname.split("/");
      const options = { limits: { cpuMs: 50, subRequests: 5 }, outbound: { customer: name } };
      try { return await env.NS.get(name, {}, options).fetch(request); } catch (error) { return new Response("thrown: " + error.message, { status: 500 }); }
    } };`,
    bindings: [
      {
        type: "dispatch_namespace",
        name: "NS",
        namespace: "prison",
        outbound: { worker: { service: "wall" } },
      },
      { type: "kv_namespace", name: "SECRETS", namespace_id: secrets },
    ],
  });
  await hosting.deployCustomer("prison", "victim", {
    code: `globalThis.ofVictim = "global"; Array.prototype.ofVictim = "prototype";
      export default { async fetch(request, env) { return Response.json([await env.SECRETS.get("password"), typeof ofHostile, typeof [].ofHostile]); } };`,
    bindings: [{ type: "kv_namespace", name: "SECRETS", namespace_id: secrets }],
  });
  return {
    hosting,
    outside,
    async hostile(body, more = {}) {
      const { top = "", code, ...upload } = more;
      const main = `${top}
      export default { async fetch(request, env, ctx) {
        const run = async () => { ${body} };
        let value, thrown;
        try { value = await run(); } catch (error) { thrown = error.message; }
        return new Response('{"value":' + (toJson(value) ?? null) + ',"thrown":' + toJson(String(thrown)) + "}");
      } };`;
      const first = "const toJson = JSON.stringify;\n";
      await hosting.deployCustomer("prison", "hostile", {
        ...upload,
        code: {
          "index.js": first + main.replaceAll("OUTSIDE", outside.url),
          ...(code as object | undefined),
        },
      });
      const response = await hosting.ask("dispatcher", "/hostile");
      if (response.status !== 200) return response.body;
      const { value, thrown } = JSON.parse(response.body) as { value: unknown; thrown: string };
      return thrown === "undefined" ? value : `thrown: ${thrown}`;
    },
    async innocent() {
      return JSON.parse((await hosting.ask("dispatcher", "/victim")).body) as unknown;
    },
    async close() {
      await outside.close();
      await hosting.close(0);
    },
  };
}
