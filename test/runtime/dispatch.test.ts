import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startHosting, type Hosting } from "./platform.ts";

let hosting: Hosting;

const dispatcher = `
export default {
  async fetch(request, env) {
    const name = new URL(request.url).pathname.split("/")[1];
    try {
      return await env.CUSTOMERS.get(name, {}, { limits: { cpuMs: 50, subRequests: 2 } }).fetch(request);
    } catch (error) {
      if (error.message.startsWith("Worker not found")) return new Response("no such customer", { status: 404 });
      return new Response(error.message, { status: 500 });
    }
  },
};`;

beforeAll(async () => {
  hosting = await startHosting();
  await hosting.call("POST", `/accounts/${hosting.account}/workers/dispatch/namespaces`, { name: "shop" });
  await hosting.deployCustomer("shop", "hello", {
    code: `export default { fetch(request, env, ctx) {
      return Response.json({ url: request.url, cf: request.cf ?? null, text: env.TEXT, keys: Object.keys(env) });
    } };`,
    bindings: [{ type: "plain_text", name: "TEXT", text: "of hello" }],
  });
  await hosting.deploy("dispatcher", {
    code: dispatcher,
    bindings: [{ type: "dispatch_namespace", name: "CUSTOMERS", namespace: "shop" }],
  });
});
afterAll(async () => hosting.close(0));

describe("a dispatcher", () => {
  test("gives requests to the customer's script", async () => {
    const { status, body } = await hosting.ask("dispatcher", "/hello/there?a=1");
    expect(status, body).toBe(200);
    expect(JSON.parse(body)).toEqual({
      url: `http://${hosting.hostOf("dispatcher")}/hello/there?a=1`,
      cf: null,
      text: "of hello",
      keys: ["TEXT"],
    });
  });

  test("is told of a customer that is not there", async () => {
    expect(await hosting.ask("dispatcher", "/nobody")).toMatchObject({
      status: 404,
      body: "no such customer",
    });
  });

  test("is told of a customer that goes over its CPU time, each time", async () => {
    await hosting.deployCustomer("shop", "spin", `export default { fetch() { for (;;) {} } };`);
    for (let i = 0; i < 3; i++)
      expect(await hosting.ask("dispatcher", "/spin")).toMatchObject({
        status: 500,
        body: "Worker exceeded CPU time limit.",
      });
  });
});
