import { createHash } from "node:crypto";
import { decode, encode } from "dns-packet";
import { exchangeDatagram } from "../name-server/ask.ts";
import { ownerToken } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import type { ChaosNode } from "./platform.ts";
import type { Channel, Seen } from "./thing.ts";

/** How long a read may take, in milliseconds. */
const readMsMax = 5000;
type Saying = NonNullable<Seen>;

export const isSaying = (isOf: (version: number) => boolean, text: string): Saying => ({ isOf, text });
const absent = (text: string): Saying => isSaying((version) => version === 0, text);

/** The version that a text names; a text of another form is wrong. */
export function exactly(pattern: RegExp, text: string): Saying {
  const named = pattern.exec(text)?.[1];
  return isSaying((version) => version > 0 && named === String(version), text.slice(0, 100));
}

/** The content of a version: each has its own bytes, from the first to the last. */
export function textOf(name: string, version: number, bytes: number): string {
  const first = `${name} v${version} ${bytes}\n`;
  const digest = createHash("sha256").update(first).digest("hex");
  return (first + digest.repeat(Math.ceil(bytes / digest.length))).slice(0, bytes);
}

export const textSeen =
  (name: string) =>
  (text: string): Saying => {
    const [, of, version, bytes] = /^(\S+) v(\d+) (\d+)\n/.exec(text) ?? [];
    const isWhole = of === name && text === textOf(name, Number(version), Number(bytes));
    return isSaying(
      (each) => each > 0 && isWhole && each === Number(version),
      isWhole ? `v${version}` : `${text.length} bytes: ${text.slice(0, 120)}`,
    );
  };

// oxlint-disable-next-line typescript/no-explicit-any
export const readOfApi = (path: string, saying: (result: any) => Saying): Channel => ({
  name: "API",
  async read(_, call) {
    const { status, text, result } = await call("GET", path);
    if (status === 200) return saying(result);
    return status >= 500 || status === 429 ? undefined : absent(`${status} ${text.slice(0, 100)}`);
  },
});

export function recordsOf(
  name: string,
  type: "TXT" | "NS",
  saying: (record: { ttl: number; data: unknown }) => Saying,
): Channel {
  return {
    name: "DNS",
    async read({ ready }) {
      const question = encode({ type: "query", id: 4711, questions: [{ name, type }] });
      const message = await exchangeDatagram(Number(ready.dns.split(":").at(-1)), question, readMsMax);
      if (message === undefined) return undefined;
      const { answers = [] } = decode(message);
      const rcode = message.readUInt16BE(2) & 15;
      const answer = answers[0] as { ttl: number; data: unknown } | undefined;
      if (rcode === 0 && answer !== undefined) return saying(answer);
      return rcode === 2 ? undefined : absent(`rcode ${rcode}`);
    },
  };
}

/** A page of the edge. Error pages say nothing, except that there is no such site. */
export function visitSeen(
  name: string,
  host: string,
  path: string,
  saying: (body: string) => Saying,
): Channel {
  return {
    name,
    async read({ ready }) {
      const late = AbortSignal.timeout(readMsMax);
      const { status, body } = await Promise.race([
        requestEdge(ready.edge, host, path),
        new Promise<never>((_, reject) => late.addEventListener("abort", () => reject(late.reason as Error))),
      ]);
      if (status === 200) return saying(body);
      return status >= 500 ? undefined : absent(`${status} ${body.slice(0, 100)}`);
    },
  };
}

/** Bytes that never change. */
export function bytesOfEdge(
  name: string,
  urlOf: (node: ChaosNode) => string,
  isRight: (bytes: Buffer) => boolean,
): Channel {
  return {
    name,
    async read(node) {
      const response = await fetch(urlOf(node), {
        headers: { authorization: `Bearer ${ownerToken}` },
        signal: AbortSignal.timeout(readMsMax),
      });
      const bytes = Buffer.from(await response.arrayBuffer());
      if (response.status >= 500) return undefined;
      if (response.status !== 200) return absent(`${response.status} ${bytes.toString().slice(0, 100)}`);
      const right = isRight(bytes);
      return isSaying((version) => version > 0 && right, `${bytes.length} bytes`);
    },
  };
}
