import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { Client } from "../../src/cli/migration/account/client.ts";
import { cursorPagesOf } from "../../src/cli/migration/account/lists.ts";
import { path } from "../../src/cli/migration/account/path.ts";
import { findAccount } from "../../src/cli/migration/account/account.ts";
import { readDocument } from "../../src/cli/migration/document.ts";
import { printable } from "../../src/cli/migration/failure.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { fc } from "../helpers/properties.ts";

const ended: (() => void)[] = [];
afterEach(() => ended.splice(0).forEach((end) => end()));

/** A client of an account that answers as it likes. */
async function clientOf(listener: RequestListener): Promise<Client> {
  const server = createServer(listener);
  await once(server.listen(0, "127.0.0.1"), "listening");
  ended.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return new Client({ baseUrl, token: "token", callsPerSecond: 0 });
}
const json = (result: unknown, result_info: object = {}): string =>
  JSON.stringify({ success: true, result, result_info });

it("no name of an account changes the path that is called", () => {
  for (const name of ["", ".", ".."]) expect(() => path`/zones/${name}/x`).toThrow("can be part of a path");
  fc.assert(
    fc.property(fc.string({ unit: "binary", minLength: 1 }), (name) => {
      fc.pre(name !== "." && name !== "..");
      const url = new URL(`http://a.example/client/v4${path`/zones/${name}/x`}`);
      expect(url.pathname.split("/").length).toBe(6);
      expect(url.search + url.hash).toBe("");
      expect(decodeURIComponent(url.pathname.split("/")[4]!)).toBe(name.toWellFormed());
    }),
  );
});

it("an answer has a limit, also if it has no length", async () => {
  const part = Buffer.alloc(1024 * 1024);
  const client = await clientOf((_, response) => {
    const more = (): void => void (response.write(part) ? setImmediate(more) : response.once("drain", more));
    more();
  });
  await expect(client.get("/zones")).rejects.toThrow("more than 67108864 bytes");
});

it("the token follows no redirect", async () => {
  let followed = 0;
  const client = await clientOf((request, response) => {
    if (request.url === "/there") followed += 1;
    response.writeHead(302, { location: "/there" }).end();
  });
  await expect(client.send("POST", "/zones", {})).rejects.toThrow("had no answer");
  expect(followed).toBe(0);
});

it("a list that repeats its cursor ends with an error", async () => {
  const client = await clientOf((_, response) => response.end(json([{ id: 1 }], { cursor: "again" })));
  await expect(cursorPagesOf(client, "/x", "cursor", ({ cursor }) => cursor)).rejects.toThrow(
    "repeats its pages",
  );
});

it("a zone needs a name of DNS and an id", async () => {
  const zone = { id: "a".repeat(32), name: "../../etc", account: { id: "b".repeat(32) } };
  const client = await clientOf((_, response) => response.end(json([zone])));
  await expect(findAccount(client, "b".repeat(32), undefined)).rejects.toThrow("Expected a zone");
});

it("control characters never reach the terminal", () => {
  expect(printable("a\u001b]0;x\u0007\n\u202eb")).toBe("a\ufffd]0;x\ufffd\ufffd\ufffdb");
});

it("a file is checked, and the message names the field", () => {
  const file = join(temporaryFolder(), "x.json");
  const head = { source: { base_url: "", account_id: "" }, zones: [], include: [], left_out: [] };
  const read = (content: unknown): unknown => {
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
    return readDocument(file);
  };
  const one = (resource: object): object => ({ selvedge_import: 1, ...head, resources: [resource] });
  expect(() => read("{")).toThrow("is not valid JSON");
  expect(() => read({ selvedge_import: 2 })).toThrow(
    'Expected a file of selvedge import with "selvedge_import": 1',
  );
  expect(() => read(one({ product: "other", key: "", value: {} }))).toThrow("resources.0.product");
  const queue = { product: "queue", key: "jobs", value: { name: "jobs", settings: {}, more: 1 } };
  expect(() => read(one(queue))).toThrow('resources.0.value: Unrecognized key: "more"');
  expect(() => read(one({ ...queue, value: { name: "other", settings: {} } }))).toThrow(
    "expected the key other",
  );
});
