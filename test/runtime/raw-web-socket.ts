import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Opens a WebSocket whose frames are written by hand. `extensions` are offered to the server. */
export async function openRawWebSocket(edge: string, host: string, extensions?: string): Promise<Socket> {
  const { hostname, port } = new URL(edge);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {}); // the end of the connection, while the client sends
  const lines = [
    "GET / HTTP/1.1",
    `host: ${host}`,
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    ...(extensions === undefined ? [] : [`sec-websocket-extensions: ${extensions}`]),
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  const head = String(((await once(socket, "data")) as [Buffer])[0]);
  if (!head.startsWith("HTTP/1.1 101 ")) throw new Error(`the upgrade was answered with ${head}`);
  return socket;
}

/** A frame, masked with zeros if it is a client's. `first` is its first byte, such as 0x82 for a binary message. */
export function frame(first: number, payload: Uint8Array, isMasked = true, length = payload.length): Buffer {
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const header = Buffer.alloc(2 + size + (isMasked ? 4 : 0));
  header[0] = first;
  header[1] = (isMasked ? 0x80 : 0) | (size === 0 ? length : size === 2 ? 126 : 127);
  if (size === 2) header.writeUInt16BE(length, 2);
  else if (size === 8) header.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([header, payload]);
}

/** Writes the same bytes until the socket has taken so many, or has closed. Returns the number of bytes. */
export async function flood(socket: Socket, bytes: Buffer, bytesMax: number): Promise<number> {
  let sentBytes = 0;
  while (sentBytes < bytesMax && !socket.destroyed) {
    await new Promise<void>((resolve) => {
      socket.once("close", resolve);
      socket.write(bytes, () => {
        socket.off("close", resolve);
        resolve();
      });
    });
    sentBytes += bytes.length;
  }
  return sentBytes;
}
