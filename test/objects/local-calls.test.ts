import { afterAll, beforeAll, expect, it } from "vitest";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Calls of objects whose callers are in the same cell do not leave the process, and keep their limits. */
let hosting: Hosting;
const requestSubrequestsMax = 1000;
beforeAll(async () => (hosting = await startHosting({ requestSubrequestsMax })));
afterAll(async () => hosting?.close(0));

const code = (version: string): string => `import { DurableObject } from "cloudflare:workers";
const others = {
  async fetches(env, n) {
    const other = env.ROOMS.getByName("other");
    for (let i = 0; i < n; i++) await (await other.fetch("http://object/version")).text();
  },
  async calls(env, n) {
    const other = env.ROOMS.getByName("other");
    for (let i = 0; i < n; i++) await other.version();
  },
  async tries(env, n) {
    const other = env.ROOMS.getByName("other");
    let made = 0;
    for (let i = 0; i < n; i++) await other.version().then(() => made++, () => {});
    return String(made);
  },
};
export class Room extends DurableObject {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const [, what] = pathname.split("/");
    const n = Number(searchParams.get("n"));
    if (what === "version") return new Response(this.version());
    if (what === "cf") return Response.json({ cf: request.cf?.colo ?? null, own: request.headers.get("x-own") });
    if (what === "askCf") return this.env.ROOMS.getByName("other").fetch("http://object/cf", { headers: { "x-own": "1" } });
    if (what === "askOut") return this.env.ROOMS.getByName("other").fetch("http://object/out");
    if (what === "out") return fetch("http://outside.example/");
    if (what === "askOutBelow") return new Response(await this.below(n, "askOut"));
    if (what === "spread") return Response.json(await this.spread(n, Number(searchParams.get("levels"))));
    if (what === "deep") return Response.json(await this.deep(n));
    if (what === "seen") return new Response(String(this.seen ?? 0));
    if (what === "leave") return Response.json(await this.leave());
    return new Response((await others[what](this.env, n)) ?? "done");
  }
  version() { return ${JSON.stringify(version)}; }
  async deep(n) {
    try { return 1 + await this.env.ROOMS.getByName("deep" + n % 2).deep(n + 1); }
    catch (error) { return error.message.startsWith("Too many scripts") ? 0 : error.message; }
  }
  /** Asks an object to ask an object, and so on. */
  async below(n, path) {
    const next = this.env.ROOMS.getByName("below" + n);
    return n === 0 ? (await next.fetch("http://object/" + path)).text() : next.below(n - 1, path);
  }
  /** The number of calls that succeed, when each object of some levels calls as many. */
  async spread(n, levels) {
    let made = 0;
    for (let i = 0; i < n; i++) {
      try { made += 1 + (levels > 1 ? await this.env.ROOMS.getByName("level" + levels).spread(n, levels - 1) : 0 * await this.env.ROOMS.getByName("last").spread(0, 1)); }
      catch (error) { if (!error.message.includes("oo many subrequests")) throw error; }
    }
    return made;
  }
  async leave() {
    const gone = this.env.GONE.getByName("x");
    const seen = [];
    for (let i = 0; i < 400; i++) {
      try { seen.push(await gone.say()); } catch (error) { seen.push(error.message); break; }
      this.seen = seen.length;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return [seen[0], seen.at(-1)];
  }
}
export default { async fetch(request, env) {
  try { return await env.ROOMS.getByName("one").fetch(request); }
  catch (error) { return new Response("threw " + error.message); }
} };`;

const upload = (version: string, more: object = {}) => ({
  code: code(version),
  bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
  metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] }, ...more },
});
const ask = async (script: string, path: string): Promise<string> => (await hosting.ask(script, path)).body;

it("does not leave the process for calls of objects of the same process", async () => {
  await hosting.deploy("rooms", upload("one"));
  expect(await ask("rooms", "/fetches?n=1")).toBe("done");
  const { events } = hosting.services.objectCells;
  const before = { ...events };
  expect(await ask("rooms", "/fetches?n=90")).toBe("done");
  expect(await ask("rooms", "/calls?n=90")).toBe("done");
  expect(events).toMatchObject({ requests: before.requests + 2, calls: before.calls });
});

it("does not leave the process for calls that a called object makes, either", async () => {
  const { events } = hosting.services.objectCells;
  expect(await ask("rooms", "/spread?n=2&levels=3")).toBe("14");
  const before = { ...events };
  expect(await ask("rooms", "/spread?n=2&levels=3")).toBe("14");
  expect(events).toMatchObject({ requests: before.requests + 1, calls: before.calls });
});

it("an object below other objects of the process makes requests of its own", async () => {
  for (const depth of [0, 1, 4])
    expect(await ask("rooms", `/askOutBelow?n=${depth}`)).toBe(await ask("rooms", "/out"));
});

it("gives an object of the same process the visitor's data, and a run of its own for its requests", async () => {
  const [through, near] = [await ask("rooms", "/cf"), await ask("rooms", "/askCf")];
  expect(JSON.parse(near)).toEqual({ ...JSON.parse(through), own: "1" });
  expect(await ask("rooms", "/askOut")).toBe(await ask("rooms", "/out"));
});

it("calls the new version after a deployment", async () => {
  const script = {
    ...upload("one"),
    code: `${code("one").replace("export default {", "const unused = {")}
export default { async fetch(request, env) { return new Response(await env.ROOMS.getByName("one").ask()); } };`.replace(
      "version() {",
      `ask() { return this.env.ROOMS.getByName("other").version(); }\n  version() {`,
    ),
  };
  await hosting.deploy("versions", script);
  expect(await ask("versions", "/")).toBe("one");
  expect(await ask("versions", "/")).toBe("one");
  await hosting.deploy("versions", {
    ...script,
    code: script.code.replace('return "one"', 'return "two"'),
    metadata: {},
  });
  expect(await ask("versions", "/")).toBe("two");
});

it("counts calls of the same process among a run's subrequests", async () => {
  await hosting.deploy("counted", upload("one", { limits: { subrequests: 150 } }));
  expect(await ask("counted", "/calls?n=140")).toBe("done");
  expect(await ask("counted", "/calls?n=400")).toBe("threw Too many subrequests.");
  expect(await ask("counted", "/fetches?n=400")).toBe("threw Too many subrequests.");
  // It goes on after the refusal: at most the calls that were not counted yet succeed beyond the limit.
  expect(Number(await ask("counted", "/tries?n=1000"))).toBeLessThanOrEqual(150 + 100);
});

it("counts the calls of all objects of a request together", async () => {
  // No run makes more than 12 calls, but all together would make 1,884.
  const made = JSON.parse(await ask("rooms", "/spread?n=12&levels=3")) as number;
  expect(made).toBeGreaterThan(requestSubrequestsMax / 2);
  expect(made).toBeLessThanOrEqual(requestSubrequestsMax + 100);
});

it("ends calls that go too deep", async () => {
  const depth = JSON.parse(await ask("rooms", "/deep?n=0")) as number;
  expect(depth).toBeGreaterThan(5);
  expect(depth).toBeLessThan(17);
});

it("no call reaches a namespace that was deleted meanwhile", async () => {
  const say = `import { DurableObject } from "cloudflare:workers";
export class Gone extends DurableObject { say() { return "here"; } }
export default { fetch: () => new Response() };`;
  await hosting.deploy("gone", {
    code: say,
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Gone"] } },
  });
  const { bindings } = upload("one");
  await hosting.deploy("leaves", {
    ...upload("one"),
    bindings: [
      ...bindings,
      { type: "durable_object_namespace", name: "GONE", class_name: "Gone", script_name: "gone" },
    ],
  });
  const left = ask("leaves", "/leave");
  await expect.poll(async () => Number(await ask("leaves", "/seen"))).toBeGreaterThan(3);
  await hosting.call("DELETE", `/accounts/${hosting.account}/workers/scripts/gone?force=true`);
  const [first, last] = JSON.parse(await left) as string[];
  expect(first).toBe("here");
  expect(last).toMatch(/does not exist any more|has been deleted|deleted/);
});
