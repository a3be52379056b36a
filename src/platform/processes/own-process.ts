import type { MainChannel } from "./main-channel.ts";
import type { Supervised } from "./supervised.ts";

/** The role of this process in its node. */
export type OwnProcess =
  | { role: "single" }
  | { role: "main"; supervised: Supervised }
  | {
      role: "edge";
      supervised: Supervised;
      channel: MainChannel;
      /** Whether main answers all requests, see `takesAll` of a capability. */
      passesAll: boolean;
    };

/** Whether this process listens for visitors. */
export const isEdge = ({ role }: OwnProcess): boolean => role !== "main";
/** Whether this process answers everything else: the API, DNS and work of its own. */
export const isMain = ({ role }: OwnProcess): boolean => role !== "edge";
