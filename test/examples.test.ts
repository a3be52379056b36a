import { execFile } from "node:child_process";
import { cpSync, readdirSync, readFileSync } from "node:fs";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import sharp from "sharp";
import { temporaryFolder } from "./helpers/process.ts";
import { ownerToken, startTestServer, type TestServer } from "./helpers/server.ts";
import { requestEdge } from "./helpers/edge-request.ts";

/** Every example runs as it stands, against a real platform. `runtime/example.test.ts` tests multi-tenant. */
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ metricsListen: "127.0.0.1:0" });
});
afterAll(async () => server.close(0));

/** Runs a program of an example to its end and returns what it prints. */
async function run(program: string, args: readonly string[] = [], cwd = process.cwd()): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [resolve(program), ...args], {
    cwd,
    env: {
      ...process.env,
      CLOUDFLARE_BASE_URL: server.ready.api,
      CLOUDFLARE_API_BASE_URL: server.ready.api,
      CLOUDFLARE_API_TOKEN: ownerToken,
      CLOUDFLARE_ACCOUNT_ID: server.ready.account_id,
      EDGE_URL: server.ready.edge,
      NAME_SERVER: server.ready.dns,
      CI: "1",
      WRANGLER_SEND_METRICS: "false",
    },
  });
  return stdout;
}
const hostOf = async (script: string): Promise<string> => {
  const { body } = await server.call("GET", `/accounts/${server.ready.account_id}/workers/subdomain`);
  return `${script}.${(body.result as { subdomain: string }).subdomain}.workers.localhost`;
};

/** Posts a text to a host of the edge, and returns the status. */
async function post(host: string, path: string, text: string): Promise<number> {
  const outgoing = request(`${server.ready.edge}${path}`, {
    method: "POST",
    headers: { host },
    agent: false,
  });
  outgoing.end(text);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode!;
}

describe("the examples", () => {
  it("are all listed on their page", () => {
    const page = readFileSync("examples/README.md", "utf8");
    const folders = readdirSync("examples", { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.filter(({ name }) => !page.includes(`](${name}`)).map(({ name }) => name)).toEqual([]);
  });

  it("workflow: an instance waits for its event and ends with its output", async () => {
    expect(await run("examples/workflow/run.js")).toBe(
      'complete {"price":42,"paidWith":"visa","parcel":"parcel with 6 × teapot"}\n',
    );
  });

  it("images: saves a picture in three widths", async () => {
    const folder = temporaryFolder();
    const photo = join(folder, "photo.jpg");
    await sharp({ create: { width: 1600, height: 1200, channels: 3, background: "teal" } }).toFile(photo);
    const saved = (await run("examples/images/thumbnails.js", [photo])).trim().split("\n");
    const sizes = await Promise.all(saved.map(async (file) => sharp(file).metadata()));
    expect(sizes.map(({ format, width }) => [format, width])).toEqual([
      ["webp", 160],
      ["webp", 480],
      ["webp", 960],
    ]);
  });

  it("dns: the name server answers the records of an imported zone file", async () => {
    const printed = await run("examples/dns/zone.js");
    expect(printed).toContain("5 records imported");
    expect(printed).toContain("docs A [ '192.0.2.10' ]");
    expect(printed).toContain("exchange: 'mail.bakery.example'");
    expect(printed).toContain("'v=spf1 mx -all'");
  });

  it("ci: the automation passes its tests on platforms of its own", async () => {
    const printed = await run("examples/ci/sync-records.test.js");
    expect(printed).toMatch(/pass 2\b/);
  });

  it("queue: a message is worked on, and a schedule is set; deploying again changes nothing", async () => {
    const deploy = async (): Promise<string> => run("examples/queue/deploy.js");
    const host = await hostOf("jobs");
    expect(await deploy()).toBe(`http://${host}/\n`);
    expect(await deploy()).toBe(`http://${host}/\n`);
    expect(await post(host, "/orders/17", "two teapots")).toBe(202);
    await vi.waitFor(async () =>
      expect((await requestEdge(server.ready.edge, host, "/orders/17")).body).toBe("done: two teapots\n"),
    );
  });

  it("durable-object: one of ten guests gets a seat; deploying again keeps the class", async () => {
    const printed = "1 of 10 guests got the seat, and all answers name 1 guest\n";
    expect(await run("examples/durable-object/deploy.js")).toBe(printed);
    expect(await run("examples/durable-object/deploy.js")).toBe(printed);
  });

  it("d1: a script and the API use one database; deploying again changes nothing", async () => {
    const printed = "{ name: 'guest', text: 'What a view!' } true\n";
    expect(await run("examples/d1/deploy.js")).toBe(printed);
    expect(await run("examples/d1/deploy.js")).toBe(printed);
  });

  it("edge: an origin rule and a snippet apply to the requests that they select", async () => {
    expect(await run("examples/edge/deploy.js")).toBe(
      "/ 200 no header origin of www.garden.example\n/app/ 200 DENY origin of www.garden.example\n",
    );
  });

  it("static-site: wrangler deploys it", async () => {
    const folder = temporaryFolder();
    cpSync("examples/static-site", folder, { recursive: true });
    await run("node_modules/wrangler/bin/wrangler.js", ["deploy"], folder);
    const host = await hostOf("static-site");
    const page = await requestEdge(server.ready.edge, host);
    expect([page.status, page.headers["x-content-type-options"]]).toEqual([200, "nosniff"]);
    expect(page.body).toContain("without a script");
    expect((await requestEdge(server.ready.edge, host, "/nothing")).body).toContain("There is no such page");
  });

  it("operate: a healthy platform has no faults", async () => {
    const { api, metrics } = server.ready;
    expect(await run("examples/operate/check.js", [api, metrics!])).toBe("ready, no faults\n");
  });
});
