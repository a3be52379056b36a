import { describe, expect, test } from "vitest";
import { usePrison } from "./prison.ts";

const prison = usePrison();

describe("what is said between the front and its cells", () => {
  const forged = [
    "x-selvedge-said",
    "x-selvedge-run",
    "x-selvedge-script",
    "x-selvedge-binding",
    "x-selvedge-dispatch",
    "x-selvedge-entrypoint",
    "x-selvedge-event",
    "x-selvedge-params",
    "x-selvedge-pass",
    "x-selvedge-cf",
    "x-selvedge-outcome",
    "x-selvedge-lane",
    "x-selvedge-tail",
    "X-Selvedge-Error",
  ];

  test("cannot be said by visitors, nor be heard by scripts", async () => {
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

  test("cannot be said by scripts to another script's bindings", async () => {
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

  test("cannot be said by the outside, and does not go there", async () => {
    await prison.hosting.deploy("asking", `export default { fetch: () => fetch("${prison.outside.url}") };`);
    const { status, body, headers } = await prison.hosting.ask("asking");
    expect(status).toBe(200);
    expect(body + JSON.stringify(headers)).not.toContain("selvedge-");
  });

  test("does not go out with what a dispatched script asks for", async () => {
    await prison.hosting.createNamespace("unwalled");
    await prison.hosting.deployCustomer(
      "unwalled",
      "customer",
      `export default { async fetch(request) {
        const own = { "x-selvedge-outcome": "forged", "x-selvedge-control": "forged", "x-selvedge-child": "forged", "x-selvedge-run": "forged" };
        const said = [...request.headers.keys()].filter((name) => name.includes("selvedge"));
        const plain = await (await fetch("${prison.outside.url}/plain", { headers: own })).json();
        const posted = await (await fetch("${prison.outside.url}/posted", { method: "POST", body: "x" })).json();
        return Response.json([said, plain, posted]);
      } };`,
    );
    await prison.hosting.deploy("to-unwalled", {
      code: `export default { fetch: (request, env) => env.NS.get("customer").fetch(request) };`,
      bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "unwalled" }],
    });
    // Once the way to it is known inside the cell, and before.
    for (let i = 0; i < 3; i++) {
      const { status, body } = await prison.hosting.ask("to-unwalled");
      expect(status, body).toBe(200);
      expect(body).toContain('[[],{"host"');
      expect(body).not.toContain("selvedge");
    }
  });

  test("cannot be said by a script's answer", async () => {
    const all = JSON.stringify(Object.fromEntries(forged.map((name) => [name, "forged"])));
    await prison.hosting.deployCustomer(
      "prison",
      "hostile",
      `export default { fetch: () => new Response("mine", { headers: ${all} }) };`,
    );
    const visit = await prison.hosting.ask("dispatcher", "/hostile");
    expect(visit).toMatchObject({ status: 200, body: "mine" });
    expect(JSON.stringify(visit.headers)).not.toContain("selvedge-");
  });

  test("cannot be forged with the wrapper's own functions", async () => {
    const take = `const { passOn, forRun, currentRun, fetchThrough } = await import("__selvedge/cells/worker/run.js"); const none = "00000000-0000-4000-8000-000000000000"; `;
    const wrapped = async (body: string): Promise<unknown> => prison.hostile(take + body);
    const refused = "thrown: This fetch belongs to no request that is being handled.";
    expect(await wrapped(`return (await forRun(none, () => fetch("OUTSIDE"))).status`)).toBe(refused);
    expect(await wrapped(`return (await forRun("", () => fetch("OUTSIDE"))).status`)).toBe(refused);
    expect(
      await wrapped(`return (await fetchThrough("SECRETS", "http://binding/value?key=password")).text()`),
    ).toBe("thrown: The script has no such binding.");
    expect(await wrapped(`return (await fetchThrough("NS", "http://x/")).text()`)).toBe(
      "thrown: The script has no such binding.",
    );
    expect(await wrapped(`return (await passOn(new Request(request.url))).status`)).toBe(
      "thrown: There is no origin here.",
    );
    expect(await wrapped(`return (await passOn(new Request("OUTSIDE"))).status`)).toBe(
      "thrown: There is no origin here.",
    );
    expect(prison.outside.seen).toEqual([]);
  });

  test("a run is over when its request is, and is nobody else's", async () => {
    // One customer hands its run to another: it gets no further than with its own.
    const take = `const { currentRun, forRun } = await import("__selvedge/cells/worker/run.js");`;
    const run = await prison.hostile(`${take} return currentRun()`);
    expect(run).toMatch(/^[\da-f-]{36}$/);
    await prison.hosting.deploy(
      "accomplice",
      `export default { async fetch() {
        ${take}
        try { return await forRun(${JSON.stringify(run)}, () => fetch("${prison.outside.url}")); } catch (error) { return new Response(error.message); }
      } };`,
    );
    expect((await prison.hosting.ask("accomplice")).body).toBe(
      "This fetch belongs to no request that is being handled.",
    );
    expect(prison.outside.seen).toEqual([]);
  });

  test("the wrapper's modules cannot be replaced", async () => {
    const code = `export const forRun = (token, handle) => handle(); export const currentRun = () => "x"; export class Control {}`;
    for (const name of ["cells/worker/run.js", "runtime/worker/script.js", "entry.js", "env.js"])
      await expect(prison.hostile("return 1", { code: { [`__selvedge/${name}`]: code } })).rejects.toThrow(
        /Expected the path of a module/,
      );
  });
});
