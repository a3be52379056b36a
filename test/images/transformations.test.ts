import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { jpegOf, scenery } from "./fixtures.ts";
import { sizeOf, startImagePlatform, type ImagePlatform } from "./platform.ts";

/** Pictures of origins under /cdn-cgi/image/, through a real edge and a real origin. */
let platform: ImagePlatform;
let zoneId: string;
let photo: Buffer;
let origin: string;
let originHeaders: Record<string, string>;
let respond: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
const seen: IncomingMessage[] = [];

const server = createServer((request, response) => {
  seen.push(request);
  if (respond !== undefined) return respond(request, response);
  if (request.headers["if-none-match"] === originHeaders["etag"] && originHeaders["etag"] !== undefined)
    return void response.writeHead(304, originHeaders).end();
  response.writeHead(200, { "content-type": "image/jpeg", ...originHeaders }).end(photo);
});

beforeAll(async () => {
  photo = await jpegOf(scenery(400, 300));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  origin = `127.0.0.1:${port}`;
  platform = await startImagePlatform({ privateNetworks: "all" });
  zoneId = await platform.newZone("shop.example");
  await platform.call("POST", `/zones/${zoneId}/dns_records`, {
    type: "A",
    name: "www",
    content: "127.0.0.1",
    proxied: true,
  });
  await platform.call("PUT", `/zones/${zoneId}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port } } }],
  });
});
afterAll(async () => {
  await platform.close(1000);
  server.close();
});
beforeEach(async () => {
  originHeaders = { "cache-control": "public, max-age=600" };
  respond = undefined;
  seen.length = 0;
  await set("transformations", "on");
  await set("transformations_allowed_origins", "");
});
afterEach(() => vi.restoreAllMocks());

const set = async (name: string, value: string): Promise<number> =>
  (await platform.call("PATCH", `/zones/${zoneId}/settings/${name}`, { value })).status;

let pictures = 0;
/** A source that no other test has requested. */
const fresh = (): string => `photos/${++pictures}.jpg`;

interface Seen {
  status: number;
  headers: IncomingMessage["headers"];
  bytes: Buffer;
}
/** Sends the path unchanged; `fetch` would normalize it. */
const ask = (path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Seen> =>
  new Promise((resolve, reject) => {
    const { port } = new URL(platform.ready.edge);
    httpRequest(
      {
        host: "127.0.0.1",
        port,
        path,
        method,
        headers: { host: "www.shop.example", ...headers },
        agent: false,
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode!, headers: response.headers, bytes: Buffer.concat(chunks) }),
        );
        response.on("error", reject);
      },
    )
      .on("error", reject)
      .end();
  });
const image = (options: string, source: string, headers?: Record<string, string>): Promise<Seen> =>
  ask(`/cdn-cgi/image/${options}/${source}`, headers);

it("a result whose file is removed before it is opened is looked for again", async () => {
  const missing = { path: "/no/such/result", sizeBytes: 300_000 };
  vi.spyOn(platform.services.images.results, "get").mockResolvedValueOnce(missing);
  const { status, bytes } = await image("width=81", fresh());
  expect([status, await sizeOf(bytes)]).toEqual([200, "81x61"]);
});

describe("a picture of the zone's own origin", () => {
  it("is transformed, and cached for the second request", async () => {
    const source = fresh();
    const first = await image("width=80,fit=cover,height=60", source);
    expect([first.status, await sizeOf(first.bytes)]).toEqual([200, "80x60"]);
    expect(first.headers).toMatchObject({
      "content-type": "image/jpeg",
      "cf-cache-status": "MISS",
      "cache-control": "public, max-age=600",
    });
    const second = await image("width=80,fit=cover,height=60", source);
    expect(second.headers["cf-cache-status"]).toBe("HIT");
    expect(second.bytes.equals(first.bytes)).toBe(true);
    const { etag } = second.headers;
    expect((await image("width=80,fit=cover,height=60", source, { "if-none-match": etag! })).status).toBe(
      304,
    );
    expect(seen).toHaveLength(1);
  });

  it("is fetched once for concurrent requests", async () => {
    const source = fresh();
    const answers = await Promise.all(["w=10", "w=20", "w=30", "w=10"].map((each) => image(each, source)));
    expect(await Promise.all(answers.map(({ bytes }) => sizeOf(bytes)))).toEqual([
      "10x8",
      "20x15",
      "30x23",
      "10x8",
    ]);
    expect(seen).toHaveLength(1);
  });

  it("identifies itself to the origin, and sends no credentials of the visitor", async () => {
    await image("w=10", `${fresh()}?v=1`, { cookie: "session=1", authorization: "Bearer x" });
    const [{ headers, url }] = seen as [IncomingMessage];
    expect(url).toMatch(/\?v=1$/);
    expect(headers["via"]).toContain("image-resizing");
    expect([headers.cookie, headers.authorization]).toEqual([undefined, undefined]);
  });

  it("keeps its format unless another is requested; auto follows the browser", async () => {
    const source = fresh();
    const accept = "image/avif,image/webp,*/*";
    expect((await image("w=10", source, { accept })).headers["content-type"]).toBe("image/jpeg");
    const auto = await image("w=10,format=auto", source, { accept });
    expect([auto.headers["content-type"], auto.headers["vary"]]).toEqual(["image/avif", "Accept"]);
    expect((await image("w=10,f=auto", source, { accept: "image/webp" })).headers["content-type"]).toBe(
      "image/webp",
    );
    expect((await image("w=10,f=png", source)).headers["content-type"]).toBe("image/png");
  });

  it("is revalidated after its lifetime, and transformed again when it has changed", async () => {
    originHeaders = { etag: '"one"' };
    const source = fresh();
    const before = await image("w=20", source);
    expect(before.headers["cache-control"]).toBe("public, max-age=0, must-revalidate");
    expect((await image("w=20", source)).headers["cf-cache-status"]).toBe("HIT");
    expect(seen.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, '"one"']);
    originHeaders = { etag: '"two"' };
    photo = await jpegOf(scenery(300, 300));
    const after = await image("w=20", source);
    photo = await jpegOf(scenery(400, 300));
    expect([await sizeOf(before.bytes), await sizeOf(after.bytes)]).toEqual(["20x15", "20x20"]);
  });

  it.each(["no-store", "private, max-age=60"])(
    "is not cached when the origin sends %s",
    async (cacheControl) => {
      originHeaders = { "cache-control": cacheControl };
      const source = fresh();
      for (let i = 0; i < 2; i++) {
        const { status, headers } = await image("w=20", source);
        expect([status, headers["cf-cache-status"]]).toEqual([200, "MISS"]);
      }
      expect(seen.length).toBeGreaterThan(1);
    },
  );

  it("follows up to five redirects", async () => {
    const target = fresh();
    respond = ({ url }, response) => {
      const hops = Number(/^\/hops\/(\d+)$/.exec(url!)?.[1] ?? 0);
      if (hops === 0) response.writeHead(200, originHeaders).end(photo);
      else response.writeHead(302, { location: hops === 1 ? `/${target}` : `/hops/${hops - 1}` }).end();
    };
    expect((await image("w=20", "hops/5")).status).toBe(200);
    const { status, headers } = await image("w=20", "hops/6");
    expect([status, headers["cf-resized"]]).toEqual([400, "err=9421"]);
  });
});

describe("pictures of other hosts", () => {
  const remote = (path = fresh()): string => `http://${origin}/${path}`;
  const result = async (source: string): Promise<[number, string | undefined]> => {
    const { status, headers } = await image("w=20", source);
    return [status, status === 200 ? undefined : String(headers["cf-resized"])];
  };

  it("are transformed when the zone allows them", async () => {
    expect(await result(remote())).toEqual([403, "err=9401"]);
    await set("transformations_allowed_origins", "127.0.0.1/photos");
    expect(await result(remote())).toEqual([200, undefined]);
    expect(await result(remote("other/1.jpg"))).toEqual([403, "err=9401"]);
    expect(await result(remote("photos-old/1.jpg"))).toEqual([403, "err=9401"]);
    await set("transformations_allowed_origins", "");
    await set("transformations", "open");
    expect(await result(remote("other/1.jpg"))).toEqual([200, undefined]);
  });

  it("are found with a missing slash, or with escaped slashes", async () => {
    await set("transformations", "open");
    expect(await result(remote().replace("//", "/"))).toEqual([200, undefined]);
    expect(await result(encodeURIComponent(remote()))).toEqual([200, undefined]);
  });

  it("are not fetched from addresses that scripts may not reach", async () => {
    const closed = await startImagePlatform({ privateNetworks: "origins" });
    const id = await closed.newZone("shop.example");
    await closed.call("POST", `/zones/${id}/dns_records`, {
      type: "A",
      name: "www",
      content: "127.0.0.1",
      proxied: true,
    });
    await closed.call("PATCH", `/zones/${id}/settings/transformations`, { value: "open" });
    const { port } = new URL(closed.ready.edge);
    const status = await new Promise((resolve) =>
      httpRequest(
        {
          host: "127.0.0.1",
          port,
          path: `/cdn-cgi/image/w=20/${remote()}`,
          headers: { host: "www.shop.example" },
          agent: false,
        },
        (response) => resolve(response.resume().statusCode),
      ).end(),
    );
    expect([status, seen]).toEqual([403, []]);
    await closed.close(1000);
  });
});

describe("requests that cannot be transformed", () => {
  it("go to the origin while the setting is off", async () => {
    await set("transformations", "off");
    const { status, headers } = await image("w=20", fresh());
    expect([status, headers["cf-resized"], seen[0]!.url]).toEqual([
      200,
      undefined,
      `/cdn-cgi/image/w=20/photos/${pictures}.jpg`,
    ]);
  });

  it.each([
    ["w=abc", "a.jpg", 400, 9401],
    ["width=20,colour=red", "a.jpg", 400, 9401],
    ["plain", "a.jpg", 400, 9401],
    ["w=20", "", 400, 9401],
    ["w=20", "http://%/x", 403, 9406],
    ["w=20", "http://user:secret@www.shop.example/x", 403, 9406],
    ["w=20", "cdn-cgi/image/w=10/a.jpg", 508, 9403],
  ])("%s of %s returns %d with code %d", async (options, source, status, code) => {
    const answer = await image(options, source);
    expect([answer.status, answer.headers["cf-resized"]]).toEqual([status, `err=${code}`]);
    expect(seen).toEqual([]);
  });

  it.each([
    ["404", 404, 9404, (response: ServerResponse) => response.writeHead(404).end()],
    ["401", 401, 9408, (response: ServerResponse) => response.writeHead(401).end()],
    ["500", 502, 9509, (response: ServerResponse) => response.writeHead(500).end()],
    ["a page", 415, 9412, (response: ServerResponse) => response.end("<html>log in</html>")],
    [
      "half a picture",
      502,
      9402,
      (response: ServerResponse) => {
        response.writeHead(200, { "content-length": photo.length });
        response.write(photo.subarray(0, 2000), () => response.destroy());
      },
    ],
    ["nothing", 502, 9504, (response: ServerResponse) => response.destroy()],
  ])("%s from the origin returns %d with code %d, and is fetched again", async (_, status, code, answer) => {
    const source = fresh();
    respond = (_request, response) => {
      answer(response);
    };
    const failed = await image("w=20", source);
    expect([failed.status, failed.headers["cf-resized"]]).toEqual([status, `err=${code}`]);
    respond = undefined;
    expect((await image("w=20", source)).status).toBe(200);
  });

  it("stop a loop of transformations", async () => {
    const { status, headers } = await image("w=20", fresh(), { via: "1.1 image-resizing" });
    expect([status, headers["cf-resized"]]).toEqual([508, "err=9403"]);
  });

  it("redirect to the picture with onerror=redirect, within the zone", async () => {
    respond = (_request, response) => void response.end("no picture");
    const source = fresh();
    const own = await image("w=20,onerror=redirect", source);
    expect([own.status, own.headers.location]).toEqual([307, `http://www.shop.example/${source}`]);
    await set("transformations", "open");
    expect((await image("w=20,onerror=redirect", `http://${origin}/${source}`)).status).toBe(415);
  });
});

it("refuse invalid values of the settings", async () => {
  expect(await set("transformations", "maybe")).toBe(400);
  for (const value of ["a b", "http://x.example", "x.example,,y.example", "*.*.example"])
    expect([value, await set("transformations_allowed_origins", value)]).toEqual([value, 400]);
  for (const value of ["*", "x.example, *.y.example/path", ""])
    expect([value, await set("transformations_allowed_origins", value)]).toEqual([value, 200]);
});

it("limit the concurrent fetches of one zone", async () => {
  const waiting: ServerResponse[] = [];
  respond = (_request, response) => void waiting.push(response);
  const asked = Array.from({ length: 24 }, async () => (await image("w=20", fresh())).status);
  await expect.poll(() => waiting.length).toBe(16);
  for (const response of waiting) response.writeHead(200, originHeaders).end(photo);
  const statuses = await Promise.all(asked);
  expect([
    statuses.filter((each) => each === 200).length,
    statuses.filter((each) => each === 503).length,
  ]).toEqual([16, 8]);
});
