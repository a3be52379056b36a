import { readFileSync } from "node:fs";
import { connect, type TLSSocket } from "node:tls";
import { expect, it } from "vitest";
import { startCores } from "./cores.ts";

/** A visit over TLS. Resolves when the connection has closed. */
const visitOver = (
  port: number,
  ca: string,
  session?: Buffer,
): Promise<{ isResumed: boolean; session: Buffer | undefined }> =>
  new Promise((resolve, reject) => {
    const servername = "www.cores.example";
    const options = { host: "127.0.0.1", port, ca, servername };
    const socket: TLSSocket = connect(session === undefined ? options : { ...options, session });
    let isResumed = false;
    let next: Buffer | undefined;
    socket.on("error", reject);
    socket.on("session", (given) => (next = given));
    socket.on("secureConnect", () => (isResumed = socket.isSessionReused()));
    socket.on("close", () => resolve({ isResumed, session: next }));
    socket.resume();
    socket.write(`GET / HTTP/1.1\r\nhost: ${servername}\r\nconnection: close\r\n\r\n`);
  });

it("a TLS session that one process began is resumed by every other", async () => {
  await using cores = await startCores(3, ["--edge-tls-listen", "127.0.0.1:0"]);
  await cores.addName("www");
  const { ready } = cores.server;
  const port = Number(new URL(ready.edge_tls!).port);
  const ca = readFileSync(ready.tls_authority!, "utf8");
  const first = await visitOver(port, ca);
  expect(first.isResumed).toBe(false);
  const visits = await Promise.all(Array.from({ length: 30 }, () => visitOver(port, ca, first.session)));
  expect(visits.filter(({ isResumed }) => !isResumed)).toEqual([]);
});
