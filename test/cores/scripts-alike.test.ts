import { once } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import { jpegOf, scenery } from "../images/fixtures.ts";
import {
  startOutside,
  type AskOptions,
  type Calls,
  type Outside,
  type EdgeResponse,
} from "../runtime/platform.ts";
import { startCores, uploadImage, type Cores } from "./cores.ts";
import { deployScripts } from "./deployed-scripts.ts";

/** Scripts answer alike in one process and in edge processes: the same requests to two nodes, one of each kind. */
let nodes: Record<"one" | "edges", Cores>;
let outside: Outside;
let photo: Buffer;

/** The path of the same image on each node. */
const images = new Map<Calls, string>();

async function setUp(cores: Cores): Promise<void> {
  images.set(cores.calls, await uploadImage(cores, "photo", photo));
  await cores.call("PATCH", `/accounts/${cores.calls.account}/images/v1/config`, { flexible_variants: true });
  await deployScripts(cores, outside);
}

beforeAll(async () => {
  photo = await jpegOf(scenery(60, 40));
  outside = await startOutside((request, response) => {
    if (request.url === "/photo") response.writeHead(200, { "content-type": "image/jpeg" }).end(photo);
    else if (request.url === "/kept-photo")
      response
        .writeHead(200, { "content-type": "image/jpeg", "cache-control": "public, max-age=600" })
        .end(photo);
    else
      request.pipe(response.writeHead(200, { "x-origin": "1" })).write(`${request.method} ${request.url} `);
  });
  const settings = ["--script-cpu-ms", "300", "--script-subrequests-max", "50", "--private-networks", "all"];
  const [one, edges] = await Promise.all([startCores(0, settings), startCores(2, settings)]);
  nodes = { one, edges };
  await Promise.all([setUp(one), setUp(edges)]);
});
afterAll(async () => {
  for (const node of Object.values(nodes)) await node[Symbol.asyncDispose]();
  await outside.close();
});

/** Without what differs between two answers of one node. */
const comparable = ({ headers, body, ...visit }: EdgeResponse): { status: number } => {
  const rest = { ...headers };
  for (const measured of ["cf-ray", "date", "server-timing", "cf-resized", "last-modified"])
    delete rest[measured];
  return {
    ...visit,
    headers: rest,
    body: body.replaceAll(/ray [0-9a-f]{16}/g, "ray"),
  } as never;
};

async function answerAlike(status: number, ask: (cores: Cores) => Promise<EdgeResponse>): Promise<void> {
  const one = comparable(await ask(nodes.one));
  expect(one.status).toBe(status);
  expect(comparable(await ask(nodes.edges))).toEqual(one);
}

const visits: [name: string, status: number, script: string, path: string, options?: AskOptions][] = [
  ["a request", 200, "plain", "/a?b=c", { headers: { "x-visitor": "v" } }],
  ["HEAD", 200, "plain", "/a", { method: "HEAD" }],
  ["a body", 200, "plain", "/echo", { method: "POST", body: "text" }],
  ["a large body", 200, "plain", "/echo", { method: "PUT", body: "0123456789".repeat(600_000) }],
  ["a status, a reason and cookies", 418, "plain", "/status"],
  ["an empty answer", 204, "plain", "/empty"],
  ["a stream", 200, "plain", "/stream"],
  ["a fetch", 200, "plain", "/fetch"],
  ["too many subrequests", 200, "plain", "/many"],
  ["a script that fetches itself", 508, "plain", "/loops"],
  ["an exception", 500, "plain", "/throw"],
  ["an exception without an origin", 500, "plain", "/reject"],
  ["too much CPU time", 503, "plain", "/loop"],
  ["bindings", 200, "bound", "/", { method: "POST", body: "streamed ".repeat(100_000) }],
  ["objects", 200, "objects", "/"],
  ["services", 200, "caller", "/"],
  ["a customer", 200, "caller", "/to/bob"],
  ["a customer that loops", 404, "caller", "/to/looping"],
  ["a customer that fetches", 200, "caller", "/to/fetching"],
  ["a customer that does not exist", 404, "caller", "/to/nobody"],
  ["an asset", 200, "site", "/a.txt"],
  ["a compressed asset", 200, "site", "/a.txt", { headers: { "accept-encoding": "gzip" } }],
  ["a part of an asset", 206, "site", "/a.txt", { headers: { range: "bytes=6-11" } }],
  ["the index", 200, "site", "/"],
  ["a redirect to an asset", 307, "site", "/index.html"],
  ["a script behind assets", 200, "site", "/none"],
];
it.each(visits)("%s", async (_, status, script, path, options) => {
  await answerAlike(status, async ({ calls }) => calls.ask(script, path, options));
});

it("a script fetches another one of the installation", async () => {
  await answerAlike(200, async ({ calls }) =>
    calls.ask("plain", "/self", { headers: { "x-other": calls.hostOf("called") } }),
  );
});

it.each([
  ["a snippet", 200, "snippets.example", "/page"],
  ["a snippet that throws", 500, "snippets.example", "/bad"],
  ["a snippet that loops", 500, "snippets.example", "/bad-loop"],
  ["a picture of a snippet", 200, "snippets.example", "/small"],
  ["a route", 200, "routed.example", "/script"],
  ["a route's exception that passes to the origin", 200, "routed.example", "/script-pass"],
  ["a picture of a route", 200, "routed.example", "/script-small"],
  ["beside a route", 200, "routed.example", "/page"],
  ["an object that fetches from the visitor's origin", 200, "objects.example", "/page"],
  ["a WebSocket that a script opens to its zone's origin", 200, "sockets.cores.example", "/"],
])("%s", async (_, status, host, path) => {
  await answerAlike(status, async ({ calls }) => calls.askHost(host, path));
});

it.each<[name: string, status: number, options: string, headers?: Record<string, string>]>([
  ["a variant", 200, "public"],
  ["a picture of some width", 200, "w=20"],
  ["the same, once more", 200, "w=20"],
  ["the same for a browser that reads WebP", 200, "w=20", { accept: "image/webp" }],
  ["a part of a picture", 206, "w=20", { range: "bytes=0-9" }],
  ["a picture that the visitor has", 304, "w=20", { "if-none-match": "*" }],
  ["an unknown variant", 404, "none"],
  ["unknown options", 400, "w=x"],
])("%s of a stored image", async (_, status, options, headers = {}) => {
  const asked = async ({ calls }: Cores): Promise<EdgeResponse> =>
    calls.askHost("any.example", `${images.get(calls)!}/${options}`, { headers });
  await answerAlike(status, asked);
});

it.each<[name: string, status: number, path: string, headers?: Record<string, string>]>([
  ["a picture", 200, "w=20/kept-photo"],
  ["the same, once more", 200, "w=20/kept-photo"],
  ["the same for a browser that reads WebP", 200, "w=20/kept-photo", { accept: "image/webp" }],
  ["another width", 200, "w=30/kept-photo"],
  ["a part of a picture", 206, "w=20/kept-photo", { range: "bytes=0-9" }],
  ["a picture that the visitor has", 304, "w=20/kept-photo", { "if-none-match": "*" }],
  ["a picture without a lifetime", 200, "w=20/photo"],
  ["a page that is no picture", 415, "w=20/page"],
  ["unknown options", 400, "w=x/kept-photo"],
  ["a redirect of unknown options", 307, "w=x,onerror=redirect/kept-photo"],
  ["a host that is not allowed", 403, "w=20/http://other.example/photo"],
])("%s of an origin, transformed", async (_, status, path, headers = {}) => {
  await answerAlike(status, async ({ calls }) =>
    calls.askHost("routed.example", `/cdn-cgi/image/${path}`, { headers }),
  );
});

it.each([
  ["a script", "plain", "/upgrade"],
  ["an object", "objects", "/"],
])("a WebSocket to %s", async (_, script, path) => {
  const talk = async ({ calls }: Cores): Promise<unknown[]> => {
    const socket = calls.connect(script, path);
    await once(socket, "open");
    const received: unknown[] = [];
    for (const text of ["one", "two ".repeat(20_000)]) {
      const next = once(socket, "message");
      socket.send(text);
      received.push(String((await next)[0]));
    }
    if (script === "plain") {
      const closed = once(socket, "close");
      socket.send("end");
      received.push(...(await closed).map(String));
    } else socket.close();
    return received;
  };
  expect(await talk(nodes.edges)).toEqual(await talk(nodes.one));
});

it("an object fetches from the visitor's zone when the visitor has been answered", async () => {
  for (const { calls } of Object.values(nodes)) {
    expect((await calls.askHost("objects.example", "/late")).body).toBe("answered");
    await expect
      .poll(async () => (await calls.askHost("objects.example", "/heard")).body)
      .toBe("of the script");
  }
});

it("a WebSocket to a script that fetches from its zone's origin", async () => {
  for (const { calls } of Object.values(nodes)) {
    const socket = calls.connect("sockets", "/", "sockets.cores.example");
    await once(socket, "open");
    const next = once(socket, "message");
    socket.send("x");
    expect(String((await next)[0])).toBe("whole x");
    socket.close();
  }
});

it("the API counts the runs of a customer, whichever process ran them", async () => {
  for (const node of Object.values(nodes)) {
    const { calls } = node;
    const path = `/accounts/${calls.account}/edge/dispatch/namespaces/customers/usage`;
    const requests = async (): Promise<number> => {
      const { result } = (await node.call("GET", path)) as {
        result: { script_name: string; requests: number }[];
      };
      return result.find(({ script_name: name }) => name === "bob")?.requests ?? 0;
    };
    const before = await requests();
    for (let i = 0; i < 6; i++) expect((await calls.ask("caller", "/to/bob")).status).toBe(200);
    await expect.poll(requests).toBeGreaterThanOrEqual(before + 6);
  }
});
