import { Socket } from "node:net";

/** The receive buffer that all plain connections share. Received bytes are used or copied before the next read. */
export const received = Buffer.allocUnsafeSlow(64 * 1024);

/** Gets the number of bytes in the buffer. Returns false to stop reading until the socket is resumed. */
type Received = (length: number) => boolean;

interface Handle {
  useUserBuffer?: (buffer: Buffer) => void;
}

/**
 * The properties in which a socket keeps its `onread` option. Node has this option for connections that it opens, but not
 * for those that it accepts, which would get a new buffer of 64 KiB for each packet.
 */
const [bufferKey, callbackKey] = keysOf();

function keysOf(): readonly [symbol | undefined, symbol | undefined] {
  const callback = (): boolean => true;
  const sample = new Socket({ onread: { buffer: received, callback } });
  const values = sample as unknown as Record<symbol, unknown>;
  const keys = Object.getOwnPropertySymbols(sample);
  return [keys.find((key) => values[key] === received), keys.find((key) => values[key] === callback)];
}

/**
 * Lets an accepted connection read into the shared buffer. Returns false, and does nothing, if this is not possible; its
 * data then come as events.
 */
export function readIntoShared(socket: Socket, take: Received): boolean {
  const { _handle: handle } = socket as unknown as { _handle?: Handle | null };
  if (bufferKey === undefined || callbackKey === undefined || handle?.useUserBuffer === undefined)
    return false;
  Object.assign(socket, { [bufferKey]: received, [callbackKey]: take });
  handle.useUserBuffer(received);
  return true;
}

/** From now on the bytes of such a connection are read from the socket, as from any other stream. */
export function readFromSocket(socket: Socket): void {
  const take: Received = (length) => socket.push(Buffer.from(received.subarray(0, length)));
  Object.assign(socket, { [callbackKey!]: take });
}
