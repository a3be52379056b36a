import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AddressPolicy } from "../../../edge/origin/address-policy.ts";
import { fetchRemote } from "./remote.ts";

/** Uploads by URL: the addresses they may fetch, and those they may not even connect to. */
let server: Server;
let port: number;
let connections = 0;
let asked: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization ?? "-"}`);
    const redirect = /^\/to\?(.*)$/.exec(request.url ?? "")?.[1];
    const again = /^\/again\/(\d+)$/.exec(request.url ?? "")?.[1];
    if (redirect !== undefined) response.writeHead(302, { location: decodeURIComponent(redirect) }).end();
    else if (again !== undefined) response.writeHead(302, { location: `/again/${Number(again) + 1}` }).end();
    else if (request.url === "/missing") response.writeHead(404).end("no");
    else response.end("bytes");
  });
  server.on("connection", () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const fetched = (address: string, policy: AddressPolicy): Promise<string> =>
  fetchRemote(address, policy, async (body, filename) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    return `${filename} ${Buffer.concat(chunks).toString()}`;
  });
const open = (): AddressPolicy => new AddressPolicy("all");

it("follows redirects, and sends credentials of the URL to their host only", async () => {
  asked = [];
  const to = encodeURIComponent(`http://localhost:${port}/a%20b.jpg?x=1`);
  expect(await fetched(`http://me:p%40ss@127.0.0.1:${port}/to?${to}`, open())).toBe("a b.jpg bytes");
  expect(asked[0]).toContain(`Basic ${Buffer.from("me:p@ss").toString("base64")}`);
  expect(asked[1]).toBe("/a%20b.jpg?x=1 -");
});

it("uses credentials literally when they contain an invalid % escape", async () => {
  asked = [];
  await fetched(`http://me:50%@127.0.0.1:${port}/a.jpg`, open());
  expect(asked[0]).toContain(`Basic ${Buffer.from("me:50%").toString("base64")}`);
});

it.each([
  ["http://127.0.0.1:PORT/"],
  ["http://[::1]:PORT/"],
  ["http://localhost:PORT/"],
  ["http://0x7f.1:PORT/"],
  ["http://2130706433:PORT/"],
  ["http://0:PORT/"],
  ["http://[::ffff:127.0.0.1]:PORT/"],
  ["http://169.254.169.254/latest/meta-data"],
  ["http://[::ffff:10.0.0.1]/"],
  ["http://100.64.0.1/"],
  ["http://[64:ff9b::7f00:1]/"],
  ["http://[2002:7f00:1::]/"],
  ["http://[2001:0:7f00:1::]/"],
  ["http://[fe80::1]/"],
  ["http://192.168.1.1/"],
])("does not connect to %s", async (address) => {
  connections = 0;
  for (const policy of [new AddressPolicy("deny"), new AddressPolicy("origins")])
    await expect(fetched(address.replace("PORT", String(port)), policy)).rejects.toMatchObject({
      kind: "images.invalidUpload",
    });
  expect(connections).toBe(0);
});

it("checks every redirect again, also when private addresses are allowed but own listeners are not", async () => {
  const own = createServer((_, response) => response.end("secret"));
  await new Promise<void>((resolve) => own.listen(0, "127.0.0.1", resolve));
  let ownConnections = 0;
  own.on("connection", () => (ownConnections += 1));
  const policy = open();
  const ownPort = (own.address() as AddressInfo).port;
  policy.forbidListener(ownPort);
  const to = encodeURIComponent(`http://127.0.0.1:${ownPort}/`);
  await expect(fetched(`http://127.0.0.1:${port}/to?${to}`, policy)).rejects.toMatchObject({
    kind: "images.invalidUpload",
  });
  expect(ownConnections).toBe(0);
  own.close();
});

it.each([
  ["file:///etc/passwd", /an http or https address/],
  ["gopher://example.com/", /an http or https address/],
  ["not an address", /an http or https address/],
  ["http://127.0.0.1:PORT/missing", /status 404/],
  ["http://127.0.0.1:PORT/again/1", /redirects more than 5 times/],
  ["http://127.0.0.1:PORT/to?file%3A%2F%2F%2Fetc%2Fpasswd", /an http or https address/],
  ["http://127.0.0.1:1/", /could not be fetched/],
  ["http://nothing.invalid/", /has no address/],
])("reports why %s was not fetched", async (address, words) => {
  await expect(fetched(address.replace("PORT", String(port)), open())).rejects.toMatchObject({
    kind: "images.invalidUpload",
    message: expect.stringMatching(words) as string,
  });
});
