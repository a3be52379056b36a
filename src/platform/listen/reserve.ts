import { rmSync } from "node:fs";
import type { Config } from "../config/settings.ts";
import { FolderOwner } from "../storage/folder-owner.ts";
import type { PassedSockets } from "./passed.ts";
import { Sockets, type NodePart } from "./sockets.ts";

/** The resources that a node reserves before it opens its database: its sockets and its data folder. */
export interface Reserved extends Disposable {
  sockets: Sockets;
}

/**
 * Reserves the sockets and the data folder, or throws and leaves nothing behind. A new data folder is created
 * only after the sockets are bound.
 */
export async function reserve(
  config: Config,
  passed: PassedSockets = new Map(),
  part: NodePart = "all",
): Promise<Reserved> {
  using stack = new DisposableStack();
  if (part === "edge" || part === "sockets") {
    const sockets = stack.use(await Sockets.bind(config, passed, part));
    const taken = stack.move();
    return { sockets, [Symbol.dispose]: () => taken.dispose() };
  }
  const { dataDir, ephemeral } = config;
  const own = (): FolderOwner => stack.use(new FolderOwner(dataDir));
  let owner = !ephemeral && FolderOwner.isKnown(dataDir) ? own() : undefined;
  const sockets = stack.use(await Sockets.bind(config, passed, part));
  if (!ephemeral) owner ??= own();
  owner?.announce();
  const { readyFile } = config;
  if (readyFile !== undefined) {
    // The file of a killed process must not be taken for this process's own.
    rmSync(readyFile, { force: true });
    stack.defer(() => rmSync(readyFile, { force: true }));
  }
  const kept = stack.move();
  return { sockets, [Symbol.dispose]: () => kept.dispose() };
}
