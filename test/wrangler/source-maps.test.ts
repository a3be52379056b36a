import { once } from "node:events";
import { networkInterfaces } from "node:os";
import { Writable } from "node:stream";
import { pino } from "pino";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { ask, hostOf } from "../scripts/harness.ts";
import { Project } from "./harness.ts";

/** Stacks of a TypeScript project as its author sees them: in tails, in the log and on the error page. */
let server: TestServer;
let project: Project;
let log = "";
const timeout = 300_000;

const main = `import { reach } from "./lib/far";

interface Env {
  NAME: string;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    if (request.url.endsWith("/log")) {
      console.error(new TypeError("logged"));
      return new Response(env.NAME);
    }
    const distance: number = await reach(3);
    return new Response(String(distance));
  },
};
`;
const far = `/** Comments and types make the lines of what is deployed others. */
type Distance = number;

export async function reach(distance: Distance): Promise<Distance> {
  if (distance > 2) {
    throw new RangeError("too far");
  }
  return distance;
}
`;

beforeAll(async () => {
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      log += chunk.toString();
      done();
    },
  });
  server = await startTestServer({ edgeListen: "0.0.0.0:0" }, pino({ level: "warn" }, destination));
  project = new Project(server);
  project.write({
    "wrangler.json": {
      name: "mapped",
      main: "src/index.ts",
      compatibility_date: "2026-01-01",
      upload_source_maps: true,
      minify: true,
    },
    "src/index.ts": main,
    "src/lib/far.ts": far,
  });
  await project.run(["deploy"]);
}, timeout);
afterAll(async () => {
  project.remove();
  await server.close(1000);
});

const thrownAt =
  /RangeError: too far\n {4}at reach \((?:\S*\/)?lib\/far\.ts:6:11\)\n {4}at Object\.fetch \((?:\S*\/)?index\.ts:13:36\)/;

it("a tail names the lines of the sources, of what was thrown and of what was logged", async () => {
  const path = `/accounts/${server.ready.account_id}/workers/scripts/mapped/tails`;
  const { body } = await server.call("POST", path, {});
  const socket = new WebSocket(String(body.result.url), "trace-v1");
  const seen: { exceptions: { stack: string }[]; logs: { message: string[] }[] }[] = [];
  socket.on("message", (data: Buffer) => seen.push(JSON.parse(data.toString()) as (typeof seen)[number]));
  await once(socket, "open");
  await ask(server, "mapped", "/");
  await vi.waitFor(() => expect(seen.length).toBe(1));
  expect(seen[0]!.exceptions[0]!.stack).toMatch(thrownAt);
  await ask(server, "mapped", "/log");
  await vi.waitFor(() => expect(seen.length).toBe(2));
  expect(seen[1]!.logs[0]!.message[0]).toMatch(
    /TypeError: logged\n {4}at Object\.fetch \((?:\S*\/)?index\.ts:10:21\)/,
  );
  socket.terminate();
});

it("the log names them", async () => {
  log = "";
  await ask(server, "mapped", "/");
  const entry = log
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { msg: string; err: { stack: string } })
    .find(({ msg }) => msg === "a script failed");
  expect(entry!.err.stack).toMatch(thrownAt);
});

it("the page names them for visitors at this machine, as HTML and as JSON", async () => {
  expect((await ask(server, "mapped", "/")).body).toMatch(thrownAt);
  const { body } = await ask(server, "mapped", "/", { accept: "application/json" });
  const { exception } = (JSON.parse(body) as { error: { exception: object } }).error;
  expect(exception).toEqual({
    name: "RangeError",
    message: "too far",
    stack: expect.stringMatching(thrownAt),
  });
});

const outer = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address;

const strangers: [who: string, address: string, headers: Record<string, string>][] = [
  ["comes over a proxy", "127.0.0.1", { "x-forwarded-for": "127.0.0.1" }],
];
if (outer !== undefined) strangers.push(["comes from elsewhere", outer, {}]);

it.each(strangers)("a visitor who %s is shown nothing of it", async (_who, address, headers) => {
  const edge = `http://${address}:${new URL(server.ready.edge).port}`;
  for (const accept of ["text/html", "application/json"]) {
    const { status, body } = await requestEdge(edge, await hostOf(server, "mapped"), "/", {
      ...headers,
      accept,
    });
    expect([status, body]).toEqual([500, expect.stringContaining("1101")]);
    expect(body).not.toMatch(/too far|RangeError|\.ts|reach|fetch \(/);
  }
});

it("the code that is given back comes without them", async () => {
  const content = await fetch(
    `${server.ready.api}/accounts/${server.ready.account_id}/workers/scripts/mapped/content/v2`,
    { headers: { authorization: `Bearer ${ownerToken}` } },
  );
  const text = await content.text();
  expect(text).toContain("index.js");
  expect(text).not.toContain("application/source-map");
  expect(text).not.toContain('"mappings"');
});
