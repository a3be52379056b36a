import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { createZone } from "../snippets/example-platform.ts";
import { deploy, hostOf } from "../scripts/harness.ts";
import { jpegOf, scenery } from "./fixtures.ts";
import { sizeOf, startImagePlatform, type ImagePlatform } from "./platform.ts";

/** `fetch(url, { cf: { image } })` from scripts and snippets: real pictures of a real origin. */
let platform: ImagePlatform;
let photo: Buffer;
let outside: string;
const seen: IncomingMessage[] = [];
const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  seen.push(request);
  if (request.url!.startsWith("/page")) response.writeHead(200, { "content-type": "text/html" }).end("<p>");
  else if (request.url!.startsWith("/none")) response.writeHead(404).end();
  else
    response
      .writeHead(200, { "content-type": "image/jpeg", "cache-control": "public, max-age=600" })
      .end(photo);
});

/** Fetches the URL and options in the query. */
const code = `export default { async fetch(request) {
  const { searchParams } = new URL(request.url);
  const image = JSON.parse(searchParams.get("image"));
  const source = searchParams.get("source") ?? request.url;
  const init = { headers: { accept: request.headers.get("accept") ?? "*/*", authorization: "secret",
    "x-selvedge-image": "%7B%22width%22%3A1%7D" } };
  if (searchParams.has("method")) init.method = searchParams.get("method");
  if (image !== null) init.cf = { image };
  return searchParams.has("request") ? fetch(new Request(source, init)) : fetch(source, init);
} };`;

beforeAll(async () => {
  photo = await jpegOf(scenery(400, 300));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  outside = `http://127.0.0.1:${port}`;
  platform = await startImagePlatform({ privateNetworks: "all" });
  await deploy(platform, "resizer", code);
  await createZone(platform.ready.api, "resized.example", port, [{ name: "resizer", code }]);
});
afterAll(async () => {
  await platform.close(1000);
  server.close();
});
beforeEach(() => {
  seen.length = 0;
});

type Asked = Record<string, string>;
const from = {
  script: async (query: Asked, headers: Record<string, string> = {}) =>
    ask(await hostOf(platform, "resizer"), query, headers),
  snippet: async (query: Asked, headers: Record<string, string> = {}) =>
    ask("resized.example", query, headers),
};
async function ask(host: string, query: Asked, headers: Record<string, string>) {
  const { port } = new URL(platform.ready.edge);
  const response = await new Promise<{ status: number; headers: IncomingMessage["headers"]; bytes: Buffer }>(
    (resolve, reject) => {
      const path = `/?${new URLSearchParams(query).toString()}`;
      httpRequest(
        { host: "127.0.0.1", port, path, headers: { host, ...headers }, agent: false },
        (answer) => {
          const chunks: Buffer[] = [];
          answer.on("data", (chunk: Buffer) => chunks.push(chunk));
          answer.on("error", reject);
          answer.on("end", () =>
            resolve({ status: answer.statusCode!, headers: answer.headers, bytes: Buffer.concat(chunks) }),
          );
        },
      )
        .on("error", reject)
        .end();
    },
  );
  return response;
}

let pictures = 0;
const fresh = (): string => `${outside}/${++pictures}.jpg`;
const options = (image: unknown): string => JSON.stringify(image);

for (const [who, get] of Object.entries(from)) {
  it(`a ${who} gets the picture transformed, and the second time from the results`, async () => {
    const source = fresh();
    for (const cache of ["MISS", "HIT"]) {
      const { status, headers, bytes } = await get({
        source,
        image: options({ width: 80, height: 60, fit: "cover" }),
      });
      expect([status, headers["content-type"], await sizeOf(bytes)]).toEqual([200, "image/jpeg", "80x60"]);
      expect(headers["cf-cache-status"]).toBe(cache);
    }
    expect(seen.length).toBe(1);
    // The result is shared by all visitors.
    expect(seen[0]!.headers.authorization).toBeUndefined();
    expect(seen[0]!.headers.via).toContain("image-resizing");
  });

  it(`a ${who} negotiates the format by Accept, also with its own Request`, async () => {
    const asked = { source: fresh(), request: "1", image: options({ width: 50, format: "auto" }) };
    const { headers } = await get(asked, { accept: "image/webp,*/*" });
    expect(headers["content-type"]).toBe("image/webp");
    expect((await get(asked, { accept: "*/*" })).headers["content-type"]).toBe("image/jpeg");
  });

  it.each([
    ["an unknown option", { image: { colour: "red" } }, 400, /unknown option/],
    ["draw", { image: { draw: [{ url: "http://x.example" }] } }, 400, /draw is not available/],
    ["no object", { image: [] }, 400, /object of options/],
    ["a method with a body", { image: { width: 5 }, method: "POST" }, 400, /GET or HEAD/],
    ["a page instead of a picture", { image: { width: 5 }, path: "/page" }, 415, /9412/],
    ["a missing picture", { image: { width: 5 }, path: "/none" }, 404, /9404/],
  ] as const)(`a ${who} gets an error response for %s`, async (_what, given, status, text) => {
    const { image, path = "/x.jpg", method } = given as { image: unknown; path?: string; method?: string };
    const answer = await get({ source: outside + path, image: options(image), ...(method && { method }) });
    expect([answer.status, answer.bytes.toString()]).toEqual([status, expect.stringMatching(text)]);
    expect(answer.headers["cf-resized"]).toMatch(/^err=\d+/);
  });

  it(`a ${who} without image options gets the original picture, with any request headers`, async () => {
    const { bytes } = await get({ source: fresh(), image: "null" });
    expect(bytes.equals(photo)).toBe(true);
    expect(seen[0]!.headers["x-selvedge-image"]).toBeUndefined();
  });
}

it("a snippet transforms a picture of its own host", async () => {
  const { bytes } = await from.snippet({ image: options({ width: 40 }) });
  expect(await sizeOf(bytes)).toBe("40x30");
});
