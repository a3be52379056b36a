import { connect } from "node:http2";
import { request } from "node:http";
import { afterEach, expect, it } from "vitest";
import { fourColors, jpegOf } from "./fixtures.ts";
import { sizeOf, startImagePlatform, type ImagePlatform } from "./platform.ts";

/** The addresses at which images are delivered. */
let platform: ImagePlatform | undefined;
afterEach(() => platform?.close(1000));

interface DeliveredPicture {
  status: number;
  headers: Record<string, unknown>;
  bytes: Buffer;
}
/** A request to the edge with another Host. */
function ask(host: string, path: string, method = "GET", body?: string): Promise<DeliveredPicture> {
  return new Promise((resolve, reject) => {
    const sent = request(
      `${platform!.ready.edge}${path}`,
      { method, headers: { host }, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode!, headers: response.headers, bytes: Buffer.concat(chunks) }),
        );
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

it("every host of the edge, under a prefix, instead of the origin", async () => {
  platform = await startImagePlatform();
  const id = await platform.store(await jpegOf(fourColors(64, 48)));
  const zone = await platform.call("POST", "/zones", { name: "pictures.example" });
  await platform.call("POST", `/zones/${zone.body.result.id}/dns_records`, {
    type: "A",
    name: "www",
    content: "127.0.0.1",
    proxied: true,
  });
  const path = `/cdn-cgi/imagedelivery/${platform.ready.account_hash}/${id}/w=20`;
  for (const host of ["www.pictures.example", "nobody.example", "127.0.0.1"]) {
    const { status, bytes } = await ask(host, path);
    expect([host, status, status === 200 ? await sizeOf(bytes) : ""]).toEqual([host, 200, "20x15"]);
  }
  expect((await ask("www.pictures.example", "/cdn-cgi/imagedelivery")).headers["cf-resized"]).toBeUndefined();
});

it("a separate address, which variants and upload URLs use", async () => {
  platform = await startImagePlatform({ deliveryUrl: "https://images.example/pics/" });
  expect(platform.ready.delivery).toBe("https://images.example/pics");
  const uploaded = await platform.upload(await jpegOf(fourColors(64, 48)));
  const { id, variants } = uploaded.body.result as { id: string; variants: string[] };
  expect(variants).toEqual([`https://images.example/pics/${platform.ready.account_hash}/${id}/public`]);
  const path = `/${platform.ready.account_hash}/${id}/w=20`;
  expect((await ask("images.example", `/pics${path}`)).status).toBe(200);
  expect((await ask("images.example", `/cdn-cgi/imagedelivery${path}`)).status).toBe(200);
  expect((await ask("other.example", `/pics${path}`)).headers["cf-resized"]).toBeUndefined();
  const { uploadURL } = (await platform.api("POST", "/v2/direct_upload", {})).body.result as {
    uploadURL: string;
  };
  expect(uploadURL).toMatch(/^https:\/\/images\.example\/pics\/upload\//);
  expect((await ask("images.example", new URL(uploadURL).pathname, "OPTIONS")).status).toBe(204);
});

it("HTTP/2 over TLS, errors and 304 too", async () => {
  platform = await startImagePlatform({ edgeTlsListen: "127.0.0.1:0" });
  const id = await platform.store(await jpegOf(fourColors(64, 48)));
  const session = connect(platform.ready.edge_tls!, { rejectUnauthorized: false });
  const get = (options: string, headers: Record<string, string> = {}): Promise<DeliveredPicture> =>
    new Promise((resolve, reject) => {
      const path = `/cdn-cgi/imagedelivery/${platform!.ready.account_hash}/${id}/${options}`;
      const stream = session.request({ ":path": path, ":authority": "images.localhost", ...headers });
      const chunks: Buffer[] = [];
      let answered: Record<string, unknown> = {};
      stream.on("response", (found) => (answered = found));
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("error", reject);
      stream.on("end", () =>
        resolve({ status: Number(answered[":status"]), headers: answered, bytes: Buffer.concat(chunks) }),
      );
      stream.end();
    });
  const [first, second] = [await get("w=20,f=webp"), await get("w=20,f=webp")];
  expect([first.status, second.status, second.headers["cf-cache-status"]]).toEqual([200, 200, "HIT"]);
  expect(await sizeOf(second.bytes)).toBe("20x15");
  const etag = String(first.headers["etag"]);
  expect((await get("w=20,f=webp", { "if-none-match": etag })).status).toBe(304);
  expect((await get("w=0")).bytes.toString()).toMatch(/^ERROR 5403/);
  expect((await get("w=20,f=webp", { range: "bytes=0-3" })).bytes.toString()).toBe("RIFF");
  session.close();
});
