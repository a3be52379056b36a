import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ApiError } from "./errors.ts";
import { streamParts } from "./multipart.ts";
import { readSniffedUploadForm, readUploadForm, type UploadForm } from "./upload-form.ts";

const limits = { bodyBytesMax: 10_000, partBytesMax: 5000, partsMax: 10 };
let read: (request: IncomingMessage) => Promise<unknown>;
const server = createServer((request, response) => {
  read(request).then(
    (value) => response.end(JSON.stringify(value)),
    (error: unknown) => response.writeHead(error instanceof ApiError ? error.status : 500).end(String(error)),
  );
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => server.close());

async function send(
  body: NonNullable<RequestInit["body"]>,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    method: "POST",
    body,
    headers,
    signal: AbortSignal.timeout(5000),
  });
}
const asText = ({ metadata, files }: UploadForm): unknown => ({
  metadata,
  files: files.map((file) => [file.name, file.contentType, file.bytes.toString()]),
});
const form = (parts: [string, string | File][]): FormData => {
  const data = new FormData();
  for (const [name, value] of parts) data.append(name, value);
  return data;
};
const module_ = new File(["export default {}"], "index.js", { type: "application/javascript+module" });
const uploaded = ["index.js", "application/javascript+module", "export default {}"];

it.each([
  [
    "a JSON part",
    [
      ["metadata", '{"main_module":"index.js","bindings":[{"type":"json","name":"A"}]}'],
      ["index.js", module_],
    ],
  ],
  [
    "brackets",
    [
      ["metadata[main_module]", "index.js"],
      ["metadata[bindings][][type]", "json"],
      ["metadata[bindings][][name]", "A"],
      ["files[]", module_],
    ],
  ],
  [
    "dots",
    [
      ["metadata.main_module", "index.js"],
      ["metadata.bindings.0.type", "json"],
      ["metadata.bindings.0.name", "A"],
      ["files", module_],
    ],
  ],
] as [string, [string, string | File][]][])("reads metadata as %s", async (_, parts) => {
  read = async (request) => asText(await readUploadForm(request, limits));
  expect(await (await send(form(parts))).json()).toEqual({
    metadata: { main_module: "index.js", bindings: [{ type: "json", name: "A" }] },
    files: [uploaded],
  });
});

it("begins a new element at a repeated key, and keeps arrays of words", async () => {
  read = async (request) => asText(await readUploadForm(request, limits));
  const answer = await send(
    form([
      ["metadata[tags][]", "a"],
      ["metadata[tags][]", "b"],
      ["metadata[bindings][][name]", "A"],
      ["metadata[bindings][][name]", "B"],
      ["metadata[bindings][][type]", "json"],
      ["metadata[keep]", "true"],
    ]),
  );
  expect(await answer.json()).toMatchObject({
    metadata: { tags: ["a", "b"], bindings: [{ name: "A" }, { name: "B", type: "json" }], keep: true },
  });
});

it("finds the boundary of a form labelled as JavaScript, and accepts JSON and plain code", async () => {
  read = async (request) => asText(await readSniffedUploadForm(request, limits));
  const type = { "content-type": "application/javascript" };
  const whole = await new Response(
    form([
      ["metadata", '{"main_module":"index.js"}'],
      ["x", module_],
    ]),
  ).text();
  expect(await (await send(whole, type)).json()).toEqual({
    metadata: { main_module: "index.js" },
    files: [uploaded],
  });
  expect(await (await send('{"metadata":{"tags":["a"]}}', type)).json()).toEqual({
    metadata: { tags: ["a"] },
    files: [],
  });
  expect(await (await send("addEventListener()", type)).json()).toEqual({
    metadata: { body_part: "body" },
    files: [["body", "application/javascript", "addEventListener()"]],
  });
});

it.each([
  ["a body that is not a form", "x", { "content-type": "text/plain" }, 415],
  ["metadata that is not JSON", form([["metadata", "{"]]), {}, 400],
  ["metadata that is not an object", form([["metadata", "[]"]]), {}, 400],
  ["a prototype in the metadata", form([["metadata[__proto__][x]", "1"]]), {}, 400],
  [
    "a part over the limit",
    form([
      ["metadata", "{}"],
      ["a", new File(["x".repeat(6000)], "a")],
    ]),
    {},
    413,
  ],
  [
    "a body over the limit",
    form([
      ["a", "x".repeat(4000)],
      ["b", "x".repeat(4000)],
      ["c", "x".repeat(4000)],
    ]),
    {},
    413,
  ],
  ["too many parts", form(Array.from({ length: 12 }, (_, i) => [`p${i}`, "x"])), {}, 400],
  [
    "a truncated form",
    '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nhal',
    { "content-type": "multipart/form-data; boundary=b" },
    400,
  ],
] as [string, NonNullable<RequestInit["body"]>, Record<string, string>, number][])(
  "refuses %s",
  async (_, body, headers, status) => {
    read = async (request) => asText(await readUploadForm(request, limits));
    expect((await send(body, headers)).status).toBe(status);
  },
);

it("passes parts on as streams, and stops when the reader throws", async () => {
  const sizes: Record<string, number> = {};
  read = async (request) => {
    await streamParts(request, { ...limits, bodyBytesMax: 50_000_000 }, async ({ name }, stream) => {
      if (name === "bad") throw new Error("not this one");
      let bytes = 0;
      for await (const chunk of stream as AsyncIterable<Buffer>) bytes += chunk.length;
      sizes[name] = bytes;
    });
    return sizes;
  };
  const big = new File([new Uint8Array(20_000_000)], "big");
  expect(
    await (
      await send(
        form([
          ["a", "xyz"],
          ["big", big],
        ]),
      )
    ).json(),
  ).toEqual({ a: 3, big: 20_000_000 });
  const failed = await send(form([["bad", big]])).catch(() => undefined);
  expect([500, undefined]).toContain(failed?.status);
});
