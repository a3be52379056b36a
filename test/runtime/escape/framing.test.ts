import { describe, expect, test } from "vitest";
import { unharmed, usePrison } from "./prison.ts";

const prison = usePrison();

describe("framing", () => {
  test.each([
    ["a status text", `new Response("", { statusText: "OK\\r\\nx-split: yes" })`],
    ["a header's value", `new Response("", { headers: { a: "b\\r\\nx-split: yes" } })`],
    ["a header's name", `new Response("", { headers: { "a: b\\r\\nx-split": "yes" } })`],
    ["a method", `fetch("http://x/", { method: "GET / HTTP/1.1\\r\\nx-split: yes\\r\\n\\r\\nGET" })`],
    ["a request's header", `fetch("http://x/", { headers: { a: "b\\nx-split: yes" } })`],
    ["a protocol of a WebSocket", `new WebSocket("ws://x/", "chat\\r\\nx-split: yes")`],
  ])("cannot be broken with %s", async (_what, expression) => {
    expect(await prison.hostile(`await ${expression}; return "made"`)).toMatch(/^thrown: /);
  });

  test("stays whole under headers that lie about it", async () => {
    const lies = [
      { "content-length": "1" },
      { "content-length": "1000" },
      { "transfer-encoding": "chunked", "content-length": "3" },
      { connection: "close, x-selvedge-run", upgrade: "h2c" },
      { trailer: "x-selvedge-outcome", te: "trailers" },
    ];
    for (const headers of lies) {
      for (const status of [200, 204, 304]) {
        const body =
          status === 200
            ? '"hello\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\ncontent-length: 4\\r\\n\\r\\nevil"'
            : "null";
        await prison.hosting.deployCustomer(
          "prison",
          "hostile",
          `export default { fetch: () => new Response(${body}, { status: ${status}, headers: ${JSON.stringify(headers)} }) };`,
        );
        const [lied, ...others] = await Promise.all([
          prison.hosting.ask("dispatcher", "/hostile"),
          ...Array.from({ length: 5 }, () => prison.innocent()),
        ]);
        expect([status, 500, 502, 520]).toContain(lied.status);
        expect(others).toEqual(others.map(() => unharmed));
      }
    }
    await prison.hosting.deploy(
      "lying",
      `export default { async fetch() {
        const answer = await fetch("${prison.outside.url}", { method: "POST", body: "abcdef", headers: { "content-length": "3", "transfer-encoding": "chunked", host: "evil.example", connection: "x-kept", "x-kept": "yes" } });
        return new Response(await answer.text());
      } };`,
    );
    expect(JSON.parse((await prison.hosting.ask("lying")).body)).toMatchObject({
      host: new URL(prison.outside.url).host,
      "content-length": "6",
    });
  });

  test("stays whole under huge headers", async () => {
    const huge = `"x-huge": "v".repeat(300_000)`;
    expect(await prison.hostile(`return (await fetch("OUTSIDE", { headers: { ${huge} } })).status`)).toBe(
      431,
    );
    await prison.hosting.deployCustomer(
      "prison",
      "hostile",
      `export default { fetch: () => new Response("", { headers: { ${huge} } }) };`,
    );
    // They do not leave the cell: the dispatcher returns them, and its own answer fails.
    expect(await prison.hosting.ask("dispatcher", "/hostile")).toMatchObject({ status: 500 });
    expect(
      await prison.hostile(
        `const all = {}; for (let i = 0; i < 5000; i++) all["x-" + i] = "v"; return (await fetch("OUTSIDE", { headers: all })).status`,
      ),
    ).toBeTypeOf("number");
    expect(await prison.innocent()).toEqual(unharmed);
    expect(prison.outside.seen).toEqual([]);
  });
});
