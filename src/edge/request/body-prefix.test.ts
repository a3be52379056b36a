import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { fc } from "../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import type { RequestDescription } from "../../rules/language.ts";
import { host, startEdge, startOrigin, requestEdge } from "./test-edge.ts";

const limit = 64 * 1024;
const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** An edge with a rule that reads the body, and an origin that responds with a digest of the body. */
async function start(readsBody = true) {
  const { port: originPort } = await startOrigin((incoming, response) => {
    const hash = createHash("sha256");
    incoming.on("data", (chunk: Buffer) => hash.update(chunk));
    incoming.on("end", () => response.end(hash.digest("hex")));
  });
  const seen: RequestDescription["body"][] = [];
  const matches = Object.assign(
    (describe: () => RequestDescription) => {
      seen.push(describe().body);
      return true;
    },
    { readsBody },
  );
  return {
    ...(await startEdge({ originPort, rule: { matches }, settings: { ruleBodyBytesMax: limit } })),
    seen,
  };
}

it("rules see the beginning of a body, and the origin gets all of it, however it arrives", async () => {
  const { port, seen } = await start();
  const sizes = fc.oneof(
    fc.constantFrom(0, 1, limit - 1, limit, limit + 1, 3 * limit),
    fc.integer({ min: 0, max: 5 * limit }),
  );
  const framings = fc.constantFrom("content-length", "chunked", "in pieces");
  await fc.assert(
    fc.asyncProperty(sizes, framings, async (size, framing) => {
      const body = randomBytes(size);
      const headers: Record<string, string> =
        framing === "content-length"
          ? { host, "content-length": String(size) }
          : { host, "transfer-encoding": "chunked" };
      const outgoing = request({ port, host: "127.0.0.1", method: "POST", headers, agent: false });
      if (framing === "in pieces")
        for (let at = 0; at < size; at += 7000) {
          const hasRoom = outgoing.write(body.subarray(at, at + 7000));
          if (!hasRoom) await once(outgoing, "drain");
        }
      outgoing.end(framing === "in pieces" ? undefined : body);
      const [response] = (await once(outgoing, "response")) as [IncomingMessage];
      let text = "";
      for await (const chunk of response) text += String(chunk);
      expect(text).toBe(digest(body));
      const { raw, truncated, size: reported } = seen.pop()!;
      expect(raw === body.toString("latin1", 0, limit)).toBe(true);
      expect(truncated).toBe(size > limit);
      if (framing === "content-length" || !truncated) expect(reported).toBe(size);
      else expect(reported).toBeGreaterThan(limit);
    }),
    { numRuns: 60 },
  );
});

it("requests without a body have no prefix, and bodies of other zones are not read", async () => {
  const asking = await start();
  await requestEdge(asking.port);
  expect(asking.seen).toEqual([{ raw: "", size: 0, truncated: false }]);
  const other = await start(false);
  expect((await requestEdge(other.port, { method: "POST" }, "body")).body).toBe(digest(Buffer.from("body")));
  expect(other.seen).toEqual([undefined]);
});

it("after the prefix, the visitor can send only as much as the origin accepts", async () => {
  const { port: originPort } = await startOrigin((incoming) => void incoming.pause());
  const matches = Object.assign((describe: () => RequestDescription) => describe().body !== undefined, {
    readsBody: true,
  });
  const { port } = await startEdge({ originPort, rule: { matches } });
  const total = 200 * 1024 * 1024;
  const socket = connect(port, "127.0.0.1");
  socket.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${total}\r\n\r\n`);
  const chunk = Buffer.alloc(1024 * 1024);
  let sent = 0;
  while (sent < total && socket.write(chunk)) sent += chunk.length;
  // Until nothing is accepted for a second.
  for (let isTaken = true; isTaken && sent < total;) {
    isTaken = await Promise.race([
      once(socket, "drain").then(() => true),
      new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 1000)),
    ]);
    if (isTaken) for (let more = true; more && sent < total; sent += chunk.length) more = socket.write(chunk);
  }
  expect(sent).toBeLessThan(total / 2);
  socket.destroy();
});

it("a visitor who disconnects during the prefix ends the request", async () => {
  const { port, seen } = await start();
  const socket = connect(port, "127.0.0.1");
  socket.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 1000\r\n\r\nsome`);
  await once(socket, "connect");
  socket.destroy();
  await expect.poll(() => seen.length).toBe(1);
  expect(seen[0]).toEqual({ raw: expect.stringMatching(/^(some)?$/), size: 1000, truncated: true });
  // The edge still works.
  expect((await requestEdge(port, { method: "POST" }, "body")).status).toBe(200);
});
