import type { RpcTunnels } from "./gateway/rpc-tunnels.ts";
import type { Gate } from "./connections/held-socket.ts";
import type { ObjectStores } from "./process/object-config.ts";

/** For a cell whose scripts may call objects: the connections to them. For a cell of objects: its slot and namespaces. */
export interface CellExtras {
  tunnels?: RpcTunnels | undefined;
  objects?: (ObjectStores & { slot: number }) | undefined;
  /** For a cell of objects: the bytes that it sends wait here. */
  gate?: Gate | undefined;
}
