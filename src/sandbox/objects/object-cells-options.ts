import type { Logger } from "pino";
import type { RpcTunnels } from "../gateway/rpc-tunnels.ts";
import type { RunHooks } from "../gateway/run-hooks.ts";
import type { CellFault } from "../errors.ts";
import type { ObjectHost } from "../process/object-config.ts";
import type { CellScript } from "../process/script.ts";
import type { AlarmNotice, BookmarkOrder, ObjectAddress, ObjectEvent } from "../protocol.ts";
import type { CellSettings } from "../settings.ts";
import type { CellLog } from "./cell-log.ts";
import type { ObjectFolders } from "./folders.ts";
import type { ObjectSizes } from "./object-sizes.ts";
import type { ActingObject } from "./standing.ts";

export interface ObjectRestores {
  isAwaited: (object: ActingObject) => boolean;
  /** Replaces the files of the object's facets. No process has them open. */
  run: (object: ActingObject) => Promise<void>;
}

/** The objects of this node, where several nodes run objects. */
export interface CellOwnership {
  /** The number of the lease under which this node runs objects; undefined while it has none. */
  readonly lease: number | undefined;
  /** Whether objects of a namespace run here now. */
  owns(namespace: string): boolean;
  /** Resolves when the files of an object are here. Rejects if it does not run here now. */
  restore(object: ActingObject): Promise<void>;
}

export interface ObjectCellsOptions {
  settings: CellSettings;
  folders: ObjectFolders;
  tunnels: RpcTunnels;
  logger: Logger;
  /** The hooks for an object that acts without a request; undefined if it may not. */
  standing: (object: ActingObject) => Promise<RunHooks | undefined>;
  /** An object has set or deleted its alarm. Resolves when that is stored. */
  alarm: (object: ActingObject, notice: AlarmNotice) => Promise<void>;
  /** Resolves with a bookmark of an object. Rejects with a Refusal. */
  bookmark: (object: ActingObject, order: BookmarkOrder) => Promise<string>;
  /** Objects that get an earlier state before their next instance starts. */
  restores?: ObjectRestores | undefined;
  /** The namespaces of a group. */
  namespacesOf: (group: string) => readonly string[];
  /** Keeps objects within their limits on disk. */
  sizes: ObjectSizes;
  /** Why no object may run here; undefined if they may. */
  refusal?: string | undefined;
  /** The objects of this node, where several nodes run objects. */
  ownership?: CellOwnership | undefined;
  /** Ships the writes of objects, if a setting enables it. */
  log?: CellLog | undefined;
  /** Whether all bytes from a cell wait until the cell's writes are shipped. */
  isShippedFirst?: boolean;
}

/** Follows a method call. `isTraced`: its logs are collected. `fault` is set if the call ended with its cell. */
export interface CallWatcher {
  isTraced: boolean;
  end(fault: CellFault | undefined): void;
}

/** The parts of a method call beside its object; see ObjectEvent. */
export interface CallOptions extends Pick<ObjectEvent, "calls" | "visitor"> {
  watcher?: CallWatcher | undefined;
}

/** An object and the code that it runs. */
export interface ObjectTarget {
  /** Objects of one group share cells. */
  group: string;
  script: CellScript;
  object: Omit<ObjectAddress, "standing">;
  /** The same for all objects of a group. Default: the host of scripts' classes. */
  host?: ObjectHost;
}
