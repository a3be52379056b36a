import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { resolve } from "node:path";
import { promisify } from "node:util";
import Cloudflare from "cloudflare";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startSelvedge, type Selvedge } from "../../src/testkit/start-selvedge.ts";

let platform: Selvedge;
beforeAll(async () => {
  platform = await startSelvedge({
    settings: { apiRateLimit: 0, nameServers: ["ns1.example.net", "ns2.example.net"] },
  });
});
afterAll(() => platform.close());

const clientOf = ({ env }: Selvedge): Cloudflare =>
  new Cloudflare({
    baseURL: env["CLOUDFLARE_BASE_URL"]!,
    apiToken: env["CLOUDFLARE_API_TOKEN"]!,
    maxRetries: 0,
  });

describe("a platform that a program starts", () => {
  it("has an owner's token, and the settings that it was given", async () => {
    const account = { id: platform.accountId };
    const zone = await clientOf(platform).zones.create({ account, name: "shop.example", type: "full" });
    expect(zone.name_servers).toEqual(["ns1.example.net", "ns2.example.net"]);
  });

  it("answers for any host name, over TLS too", async () => {
    const client = clientOf(platform);
    const account_id = platform.accountId;
    await client.workers.scripts.update("echo", {
      account_id,
      metadata: { main_module: "main.js", compatibility_date: "2026-01-01" },
      files: [
        new File(
          [
            "export default { fetch: async (request) => new Response(`${request.method} ${request.url} ${await request.text()}`) }",
          ],
          "main.js",
          { type: "text/javascript+module" },
        ),
      ],
    });
    const [zone] = (await client.zones.list({ name: "shop.example" })).result;
    await client.workers.domains.update({
      account_id,
      hostname: "www.shop.example",
      service: "echo",
      zone_id: zone!.id,
    });
    for (const scheme of ["http", "https"]) {
      const url = `${scheme}://www.shop.example/path?q=1`;
      const answer = await platform.fetch(url, { method: "POST", body: "hello" });
      expect([answer.status, await answer.text()]).toEqual([200, `POST ${url} hello`]);
    }
    await expect(platform.fetch("https://unknown.example/")).rejects.toThrow(/certificate/);
  });

  it("is separate from others that run at the same time", async () => {
    await using other = await startSelvedge();
    expect(other.token).not.toBe(platform.token);
    expect((await clientOf(other).zones.list()).result).toEqual([]);
    const headers = { authorization: `Bearer ${platform.token}` };
    expect((await fetch(`${other.urls.api}/zones`, { headers })).status).not.toBe(200);
  });

  it("is gone after it was closed", async () => {
    const other = await startSelvedge();
    await Promise.all([other.close(), other.close()]);
    await expect(fetch(other.urls.api)).rejects.toThrow();
  });
});

it("a start that fails throws what the platform printed", async () => {
  await expect(startSelvedge({ settings: { colo: "toolong" } })).rejects.toThrow(
    /selvedge ended with 1: .*SELVEDGE_COLO/,
  );
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  await expect(startSelvedge({ settings: { apiListen: `127.0.0.1:${port}` } })).rejects.toThrow(/EADDRINUSE/);
  taken.close();
});

const script = `
  import { startSelvedge } from ${JSON.stringify(resolve("src/testkit/start-selvedge.ts"))};
  const { urls } = await startSelvedge();
  process.stdout.write(urls.api);
`;
const node = (extra: string): string[] => ["--input-type=module", "--eval", script + extra];
const answers = async (api: string): Promise<boolean> =>
  fetch(api).then(
    () => true,
    () => false,
  );

it("ends with the program that started it, and keeps it from nothing", async () => {
  const { stdout: api } = await promisify(execFile)(process.execPath, node(""));
  await expect.poll(() => answers(api)).toBe(false);
});

it("ends when the program that started it is killed", async () => {
  const child = spawn(process.execPath, node("setInterval(() => {}, 1000);"), {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [data] = (await once(child.stdout, "data")) as [Buffer];
  const api = data.toString();
  expect(await answers(api)).toBe(true);
  child.kill("SIGKILL");
  await expect.poll(() => answers(api)).toBe(false);
});
