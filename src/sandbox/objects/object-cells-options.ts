import type { Logger } from "pino";
import type { Doors } from "../gateway/doors.ts";
import type { RunHooks } from "../gateway/run-hooks.ts";
import type { AlarmNotice } from "../protocol.ts";
import type { CellSettings } from "../settings.ts";
import type { CellLog } from "./cell-log.ts";
import type { ObjectFolders } from "./folders.ts";
import type { ActingObject } from "./standing.ts";

export interface ObjectCellsOptions {
  settings: CellSettings;
  folders: ObjectFolders;
  doors: Doors;
  logger: Logger;
  /** The hooks for an object that acts without a request; undefined if it may not. */
  standing: (object: ActingObject) => Promise<RunHooks | undefined>;
  /** An object has set or deleted its alarm. Resolves when that is stored. */
  alarm: (object: ActingObject, notice: AlarmNotice) => Promise<void>;
  /** The namespaces of a group. */
  namespacesOf: (group: string) => readonly string[];
  /** Ships what objects write, if a setting asks for it. */
  log?: CellLog | undefined;
}
