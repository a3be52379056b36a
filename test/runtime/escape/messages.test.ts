import { describe, expect, test } from "vitest";
import { usePrison } from "./prison.ts";

const prison = usePrison();

describe("headers between the gateway and its cells", () => {
  const forged = [
    "x-selvedge-metadata",
    "x-selvedge-run",
    "x-selvedge-script",
    "x-selvedge-binding",
    "x-selvedge-dispatch",
    "x-selvedge-entrypoint",
    "x-selvedge-event",
    "x-selvedge-params",
    "x-selvedge-pass",
    "x-selvedge-socket",
    "x-selvedge-cf",
    "x-selvedge-outcome",
    "x-selvedge-lane",
    "x-selvedge-tail",
    "X-Selvedge-Error",
  ];

  test("cannot be forged by visitors, and are invisible to scripts", async () => {
    await prison.hosting.deploy(
      "hearing",
      `export default { fetch: ({ headers, cf }) => Response.json([[...headers.keys()].filter((name) => name.includes("selvedge")), cf.colo]) };`,
    );
    const headers = Object.fromEntries(forged.map((name) => [name, '{"colo":"forged"}']));
    const { status, body } = await prison.hosting.ask("hearing", "/", { headers });
    expect([status, body]).toEqual([200, '[[],"DEV"]']);
    expect(
      await prison.hostile(`return [...request.headers.keys()].filter((name) => name.includes("selvedge"))`),
    ).toEqual([]);
  });

  test("cannot be forged by scripts for another script's bindings", async () => {
    const headers = JSON.stringify(Object.fromEntries(forged.map((name) => [name, "SECRETS"])));
    expect(
      await prison.hostile(
        `return (await fetch("http://binding/value?key=password", { headers: ${headers} })).status`,
      ),
    ).toBe(403);
    expect(
      await prison.hostile(
        `return (await fetch("http://x/", { headers: { "x-selvedge-binding": "SECRETS" } })).text()`,
      ),
    ).toBe("walled");
  });

  test("cannot be forged by origins, and are not sent to them", async () => {
    await prison.hosting.deploy("asking", `export default { fetch: () => fetch("${prison.outside.url}") };`);
    const { status, body, headers } = await prison.hosting.ask("asking");
    expect(status).toBe(200);
    expect(body + JSON.stringify(headers)).not.toContain("selvedge-");
  });

  test("are not sent with a dispatched script's requests", async () => {
    await prison.hosting.createNamespace("unwalled");
    await prison.hosting.deployCustomer(
      "unwalled",
      "customer",
      `export default { async fetch(request) {
        const own = { "x-selvedge-outcome": "forged", "x-selvedge-control": "forged", "x-selvedge-child": "forged", "x-selvedge-run": "forged" };
        const results = [...request.headers.keys()].filter((name) => name.includes("selvedge"));
        const plain = await (await fetch("${prison.outside.url}/plain", { headers: own })).json();
        const posted = await (await fetch("${prison.outside.url}/posted", { method: "POST", body: "x" })).json();
        return Response.json([results, plain, posted]);
      } };`,
    );
    await prison.hosting.deploy("to-unwalled", {
      code: `export default { fetch: (request, env) => env.NS.get("customer").fetch(request) };`,
      bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "unwalled" }],
    });
    // Before and after the target is cached in the cell.
    for (let i = 0; i < 3; i++) {
      const { status, body } = await prison.hosting.ask("to-unwalled");
      expect(status, body).toBe(200);
      expect(body).toContain('[[],{"host"');
      expect(body).not.toContain("selvedge");
    }
  });

  test("cannot be forged by a script's answer", async () => {
    const all = JSON.stringify(Object.fromEntries(forged.map((name) => [name, "forged"])));
    await prison.hosting.deployCustomer(
      "prison",
      "hostile",
      `export default { fetch: () => new Response("mine", { headers: ${all} }) };`,
    );
    const response = await prison.hosting.ask("dispatcher", "/hostile");
    expect(response).toMatchObject({ status: 200, body: "mine" });
    expect(JSON.stringify(response.headers)).not.toContain("selvedge-");
  });

  test("cannot be forged with the wrapper's own functions: no script can import them", async () => {
    for (const name of [
      "sandbox/worker/run.js",
      "workers/runtime/worker/script.js",
      "workers/runtime/worker/service.js",
    ])
      expect(await prison.hostile(`return Object.keys(await import("__selvedge/${name}"))`)).toMatch(
        /^thrown: No such module/,
      );
    expect(prison.outside.seen).toEqual([]);
  });

  test("an invented run token gives access to nothing", async () => {
    const header = `{ headers: { "x-selvedge-run": "00000000-0000-4000-8000-000000000000" } }`;
    // The wrapper overwrites the header of the run token.
    expect(await prison.hostile(`return (await fetch("http://x/", ${header})).text()`)).toBe("walled");
  });

  test("the wrapper's modules cannot be replaced", async () => {
    const code = `export const forRun = (token, handle) => handle(); export const currentRun = () => "x"; export class Control {}`;
    for (const name of ["sandbox/worker/run.js", "workers/runtime/worker/script.js", "entry.js", "env.js"])
      await expect(prison.hostile("return 1", { code: { [`__selvedge/${name}`]: code } })).rejects.toThrow(
        /Expected the path of a module/,
      );
  });
});
