import { rmSync } from "node:fs";
import { Agent, type Server } from "node:http";
import type { RequestOptions } from "node:http";
import type { Socket } from "node:net";
import { listenAt } from "../listen/listen.ts";
import { connectTo } from "../processes/protocol.ts";

/** How calls reach another process. */
export interface CallTransport {
  /** How long a call waits for a process that is started again. */
  readonly absentMsMax: number;
  newAgent(): Agent;
  /** The options of a request that say where it goes. */
  addressOf(to: string): RequestOptions;
  connect(to: string): Promise<Socket>;
  listen(server: Server, at: string): Promise<void>;
}

/** Unix sockets between the processes of a node. */
export const unixTransport: CallTransport = {
  absentMsMax: 5000,
  newAgent: () => new Agent({ keepAlive: true }),
  addressOf: (to) => ({ socketPath: to }),
  connect: connectTo,
  async listen(server, path) {
    rmSync(path, { force: true });
    await listenAt(server, { path });
  },
};
