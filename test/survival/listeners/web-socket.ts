import type { Random } from "../../name-server/random.ts";
import { randomBytes, spoiled } from "./bytes.ts";

/** A WebSocket handshake, mostly a valid one. */
export function upgradeRequest(random: Random, host: string, path: string): Buffer {
  const lines = [`GET ${path} HTTP/1.1`, `host: ${host}`, "connection: Upgrade", "upgrade: websocket"];
  lines.push(`sec-websocket-version: ${random.chance(95) ? "13" : random.pick(["8", "", "99", "\xff"])}`);
  lines.push(
    `sec-websocket-key: ${random.chance(95) ? "dGhlIHNhbXBsZSBub25jZQ==" : random.pick(["", "a", "\xff", "x".repeat(9000)])}`,
  );
  lines.push(
    `sec-websocket-protocol: ${random.chance(90) ? "trace-v1" : random.pick(["", ",,", "\xff", "trace-v1, trace-v1"])}`,
  );
  if (random.chance(20))
    lines.push(
      random.pick([
        "sec-websocket-extensions: permessage-deflate; client_max_window_bits=99",
        "sec-websocket-extensions: \xff",
        "content-length: 5",
        "sec-websocket-key: b",
      ]),
    );
  const request = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  return random.chance(3) ? spoiled(random, request) : request;
}

const payloads = [
  ...[
    "",
    "text",
    "\xed\xa0\x80",
    "\x03\xe8",
    "\x03\xe8bye",
    "\x00",
    "\x00\x00",
    "\x03\xed",
    "\x13\x88\xff",
    "{",
  ],
  ..."x".repeat(126).split(" "),
  ..."x".repeat(70_000).split(" "),
];

/** A frame (RFC 6455, 5.2), mostly well-formed. */
export function webSocketFrame(random: Random): Buffer {
  const opcode = random.chance(85) ? random.pick([0, 1, 1, 2, 8, 9, 9, 10]) : random.below(16);
  const payload = random.chance(70)
    ? Buffer.from(random.pick(payloads), "latin1")
    : randomBytes(random, random.below(300));
  const mask = random.chance(85) ? randomBytes(random, 4) : undefined;
  const announced = random.chance(94) ? payload.length : random.pick([0, 1, 126, 2 ** 16, 2 ** 32, 2 ** 53]);
  const head = Buffer.alloc(announced < 126 ? 2 : announced < 65_536 ? 4 : 10);
  head[0] = (random.chance(85) ? 0x80 : 0) | (random.chance(95) ? 0 : random.below(8) << 4) | opcode;
  head[1] = (mask === undefined ? 0 : 0x80) | (announced < 126 ? announced : announced < 65_536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(announced, 2);
  if (head.length === 10) head.writeBigUInt64BE(random.chance(95) ? BigInt(announced) : 2n ** 64n - 1n, 2);
  if (mask !== undefined) for (let i = 0; i < payload.length; i++) payload[i]! ^= mask[i % 4]!;
  const frame = Buffer.concat([head, mask ?? Buffer.alloc(0), payload]);
  return random.chance(5) ? spoiled(random, frame) : frame;
}
