import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { longer } from "../helpers/waits.ts";
import { startHosting, uploadForm } from "../runtime/platform.ts";
import { deployed, fetching, PreviewHarness } from "./preview-harness.ts";

/** Previews of hostile code and of many callers end at their limits, and disturb nobody. */
let at: PreviewHarness;
beforeAll(async () => {
  at = await PreviewHarness.start();
});
afterAll(async () => at?.[Symbol.asyncDispose]());

describe("hostile code", () => {
  it("in an endless loop ends at its CPU time, with the logs before it, and visitors notice nothing", async () => {
    const run = await at.result(
      fetching(`console.log("before"); await (await fetch("${at.outside.url}/")).text(); for (;;);`),
      { metadata: { limits: { cpu_ms: 100 } } },
    );
    expect(run).toMatchObject({ outcome: "exceededCpu", response: null, logs: [{ message: ["before"] }] });
    expect(run.cpu_ms).toBeGreaterThanOrEqual(100);
    expect(at.running()).toBe(0);
    expect((await at.hosting.ask("shop")).body).toBe("deployed ");
  });

  it("in an endless loop at its start is refused as by an upload", async () => {
    const { status, body } = await at.preview(`for (;;); ${deployed}`);
    expect(status).toBe(400);
    expect(body.errors[0]!.message).toBe("Error: Script startup exceeded CPU time limit.");
    expect(at.running()).toBe(0);
  });

  it("that takes memory is ended", async () => {
    const run = await at.result(
      fetching("const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1));"),
    );
    expect(run).toMatchObject({ outcome: "exceededMemory", response: null });
    expect(at.running()).toBe(0);
  });

  it("that takes memory or CPU time after its answer is ended, and its answer is shown", async () => {
    const loop = fetching(`ctx.waitUntil((async () => {
        await (await fetch("${at.outside.url}/")).text(); for (;;); })());
      return new Response("first");`);
    const run = await at.result(loop, { metadata: { limits: { cpu_ms: 100 } } });
    expect(run).toMatchObject({ outcome: "exceededCpu", response: { body: "first", is_truncated: false } });
  });

  it("that answers without end gets the first part shown", async () => {
    const run = await at.result(
      fetching(`console.log("streams");
        return new Response(new ReadableStream({ pull(c) { c.enqueue(new TextEncoder().encode("€".repeat(10000))); } }));`),
    );
    expect(run).toMatchObject({
      outcome: "ok",
      response: { status: 200, body_encoding: "utf-8", is_truncated: true },
      logs: [{ message: ["streams"] }],
    });
    const bytes = Buffer.byteLength(run.response.body as string);
    expect(bytes).toBeGreaterThan(1024 * 1024 - 4);
    expect(bytes).toBeLessThanOrEqual(1024 * 1024);
  });

  it("that answers slowly without end is ended at its time", async () => {
    const run = await at.result(
      fetching(`console.log("drips");
        const { readable, writable } = new TransformStream();
        const writer = writable.getWriter();
        ctx.waitUntil((async () => { for (;;) {
          await writer.write(new TextEncoder().encode("drop ")); await new Promise((done) => setTimeout(done, 10)); } })());
        return new Response(readable);`),
      { metadata: { timeout_ms: 5000 } },
    );
    expect(run).toMatchObject({
      outcome: "exceededTime",
      response: { is_truncated: true },
      logs: [{ message: ["drips"] }],
    });
    expect(run.response.body).toContain("drop ");
    expect(at.running()).toBe(0);
  });

  it("that leaves a promise behind is ended at its time, and its logs are shown", async () => {
    const run = await at.result(
      fetching(`console.log("one"); ctx.waitUntil(new Promise(() => setInterval(() => {}, 1000)));
        ctx.waitUntil((async () => { await (await fetch("${at.outside.url}/")).text(); console.log("two"); })());
        return new Response("answered");`),
      { metadata: { timeout_ms: 5000 } },
    );
    expect(run).toMatchObject({
      outcome: "exceededTime",
      response: { body: "answered", is_truncated: false },
      logs: [{ message: ["one"] }, { message: ["two"] }],
      exceptions: [{ message: expect.stringContaining("did not end within 5000 ms") }],
    });
    expect(at.running()).toBe(0);
  });

  it("that works on after its answer makes no requests after the preview", async () => {
    await at.result(
      fetching(
        `setInterval(() => fetch("${at.outside.url}/late").catch(() => {}), 1); return new Response("answered");`,
      ),
    );
    expect(at.running()).toBe(0); // its process is gone
    await at.result(deployed); // requests that the gateway had already are answered by now
    const seen = at.outside.seen.length;
    await at.result(deployed);
    expect(at.outside.seen.length).toBe(seen);
  });

  it("that logs without measure gets the first logs shown", async () => {
    const many = await at.result(
      fetching('for (let i = 0; i < 100_000; i++) console.log(i); return new Response("x");'),
    );
    expect(many.outcome).toBe("ok");
    expect(many.logs_truncated).toBe(true);
    expect(many.logs).toHaveLength(1000);
    expect(many.logs[999].message).toEqual([999]);
    const long = await at.result(
      fetching('for (let i = 0; i < 50; i++) console.log("€".repeat(100_000)); return new Response("x");'),
    );
    expect(long.logs_truncated).toBe(true);
    expect(JSON.stringify(long.logs).length).toBeLessThan(600_000);
  });

  it.each([
    ["null", "throw null;"],
    ["undefined", "throw undefined;"],
    ["a symbol", "throw Symbol('s');"],
    ["a proxy", "throw new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 2; } });"],
    [
      "an error with a name that throws",
      "throw Object.defineProperty(new Error('m'), 'name', { get() { throw 1; } });",
    ],
    ["an error with texts of other types", "throw Object.assign(new Error('m'), { message: {}, stack: 7 });"],
    ["a long error", "throw new Error('\\ud800'.repeat(1_000_000));"],
    [
      "something from an entrypoint that does not begin",
      "",
      'export default class { constructor() { throw new Error("c"); } fetch() {} }',
    ],
    ["a value that is no response", "return 7;"],
    ["a rejected promise", "ctx.waitUntil(Promise.reject(new Proxy({}, {}))); return new Response();"],
  ])("that throws %s is shown as an exception", async (_what, body, whole = "") => {
    const run = await at.result(whole === "" ? fetching(body) : whole);
    expect(run.outcome).toBe("exception");
    expect(run.exceptions.length).toBeGreaterThan(0);
    for (const { name, message } of run.exceptions as { name: string; message: string }[]) {
      expect(typeof name).toBe("string");
      expect(message.isWellFormed()).toBe(true);
      expect(message.length).toBeLessThanOrEqual(8 * 1024);
    }
  });

  it("whose response stream throws is shown as broken off", async () => {
    const run = await at.result(
      fetching(`let n = 0; return new Response(new ReadableStream({ pull(c) {
        if (n++ < 3) c.enqueue(new TextEncoder().encode("part ")); else c.error(new Error("torn")); } }));`),
    );
    expect(run.outcome).toBe("exception");
    expect(run.response?.is_truncated ?? true).toBe(true);
  });

  it("that replaces everything it can reach ends, too", async () => {
    const run = await at.preview(
      fetching(`for (const of of [Promise, Map, Set, Array, String, Request, Response, Headers, JSON])
          for (const name of Object.getOwnPropertyNames(of.prototype ?? of))
            try { (of.prototype ?? of)[name] = () => { throw new Error("replaced"); }; } catch {}
        console.log("replaced"); return new Response("x");`),
      { metadata: { timeout_ms: 1000 } },
    );
    expect([200, 400]).toContain(run.status);
    expect(at.running()).toBe(0);
  });

  it("cannot use the names of the platform's own messages", async () => {
    const run = await at.result(
      fetching(`await fetch("${at.outside.url}/", { method: "POST", body: '{"logs":[],"exceptions":[]}',
          headers: { "x-selvedge-event": "trace", "x-selvedge-run": "other" } });
        console.log("still here"); return new Response("x");`),
    );
    expect(run).toMatchObject({ outcome: "ok", logs: [{ message: ["still here"] }], subrequests: 1 });
  });

  it("that makes too many subrequests gets them refused", async () => {
    const run = await at.result(
      fetching(`let n = 0; try { for (;;) { await (await fetch("${at.outside.url}/")).text(); n++; } }
        catch (error) { return new Response(n + " " + error.message); }`),
      { metadata: { limits: { subrequests: 3 } } },
    );
    expect(run.response.body).toBe("3 Too many subrequests.");
  });
});

describe("load has an owner", () => {
  it("an account has two previews at once, and another account has its own", async () => {
    const made = await at.hosting.call("POST", "/accounts", { name: "another", type: "standard" });
    const account = (made.body.result as { id: string }).id;
    const upload = await fetch(`${at.hosting.ready.api}/accounts/${account}/workers/scripts/theirs`, {
      method: "PUT",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: uploadForm(deployed),
    });
    expect(upload.status).toBe(200);
    const theirs = { script: "theirs", account };
    const own = [await at.holding(), await at.holding()];
    expect((await at.preview(deployed)).status).toBe(429);
    const mark = fetching(
      'const before = globalThis.mark; globalThis.mark = env.KEY ?? "none"; return new Response(String(before) + " " + globalThis.mark);',
    );
    expect((await at.result(mark, theirs)).response.body).toBe("undefined none");
    const others = [await at.holding(theirs), await at.holding(theirs)];
    const third = await at.hosting.call("POST", "/accounts", { name: "third", type: "standard" });
    const free = (third.body.result as { id: string }).id;
    await fetch(`${at.hosting.ready.api}/accounts/${free}/workers/scripts/theirs`, {
      method: "PUT",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: uploadForm(deployed),
    });
    const full = await at.preview(deployed, { script: "theirs", account: free });
    expect(full.status).toBe(429);
    expect(full.body.errors[0]!.message).toContain("installation");
    for (const { release, ended } of [...own, ...others]) {
      release();
      expect((await ended).body.result.response.body).toBe("released");
    }
    expect((await at.result(mark)).response.body).toBe("undefined s3cret");
    expect(at.running()).toBe(0);
  });

  it("a preview ends with the connection of its caller", async () => {
    const controller = new AbortController();
    const { ended } = await at.holding({ signal: controller.signal });
    controller.abort();
    await expect(ended).rejects.toThrow();
    await vi.waitFor(() => expect(at.running()).toBe(0), longer({}));
  });

  it("a server that stops ends its previews, and says so", async () => {
    const stopping = await startHosting({ privateNetworks: "all" });
    await stopping.deploy("shop", deployed);
    const { ended } = await at.holding({ of: stopping });
    await stopping.close(10_000);
    const { status, body } = await ended;
    expect(status).toBe(503);
    expect(body.errors[0]!.message).toBe("The preview was ended: the server is stopping");
    expect(at.running(stopping)).toBe(0);
  });
});
