import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { openLocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";

export interface ReceivedUpload {
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
}

/** Answers with a status; or never; or with a body that never ends; or by ending the connection. */
export type Behaviour = number | "hang" | "endless" | "reset";

/** An HTTPS destination of logs. `behaviour` makes it fail. */
export interface LogReceiver {
  /** With the path /logs. */
  url: string;
  /** Its authority, for --origin-ca. */
  caFile: string;
  /** Uploads that were answered with 2xx, without those that try it out. */
  uploads: ReceivedUpload[];
  /** All requests. */
  attempts: number;
  behaviour: Behaviour;
  close(): Promise<void>;
}

export const recordsOf = ({ uploads }: Pick<LogReceiver, "uploads">): Record<string, unknown>[] =>
  uploads.flatMap(({ text }) =>
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, unknown>),
  );

/** Given an address, its certificate is for this address, which is in its URL. */
export async function startLogReceiver(address?: "::1"): Promise<LogReceiver> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-receiver-"));
  const authority = openLocalAuthority(join(folder, "authority"));
  const { certificate, privateKey } = authority.issue([address ?? "logs.localhost"]);
  const caFile = join(folder, "ca.pem");
  writeFileSync(caFile, authority.certificate);
  const server = createServer({ cert: certificate, key: privateKey }, (request, response) => {
    take(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, address ?? "127.0.0.1", resolve));
  const receiver: LogReceiver = {
    url: `https://${address === undefined ? "logs.localhost" : `[${address}]`}:${(server.address() as AddressInfo).port}/logs`,
    caFile,
    uploads: [],
    attempts: 0,
    behaviour: 200,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      rmSync(folder, { recursive: true });
    },
  };
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    receiver.attempts++;
    const { behaviour } = receiver;
    if (behaviour === "hang") return;
    if (behaviour === "reset") return void request.socket.destroy();
    const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>);
    const text = gunzipSync(Buffer.concat(chunks)).toString();
    const status = behaviour === "endless" ? 200 : behaviour;
    const isTest = text.includes('{"content":"tests"}');
    if (status < 300 && !isTest)
      receiver.uploads.push({ path: request.url!, headers: request.headers, text });
    response.writeHead(
      status,
      status < 400 && status >= 300 ? { location: "https://elsewhere.example/" } : {},
    );
    if (behaviour !== "endless") return void response.end("answered");
    const more = (): void =>
      void response.write(Buffer.alloc(64 * 1024), (error) => error ?? setImmediate(more));
    more();
  }
  return receiver;
}
