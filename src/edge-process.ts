import type { Logger } from "pino";
import type { Capability, Platform } from "./capability.ts";
import { edgeCapabilities } from "./edge-capabilities.ts";
import type { Config } from "./platform/config/settings.ts";
import type { Reserved } from "./platform/listen/reserve.ts";
import { MainChannel } from "./platform/processes/main-channel.ts";
import { channelPath } from "./platform/processes/protocol.ts";
import type { Supervised } from "./platform/processes/supervised.ts";
import { start } from "./start.ts";
import type { RunningServer } from "./server.ts";

/**
 * Starts an edge process, once main is there: it serves visitors, and reads the database that main writes. Calls
 * `joined` when it has waited for main.
 */
export async function startEdgeProcess(
  config: Config,
  logger: Logger,
  supervised: Supervised,
  reserved: Reserved,
  joined: () => void,
): Promise<Pick<RunningServer, "reload" | "announceEnd" | "giveBack" | "close">> {
  const channel = new MainChannel(channelPath(supervised.folder), supervised.id, logger);
  await channel.join().finally(joined); // the database may still have to be made
  const passesAll = edgeCapabilities.some(({ takesAll }: Capability) => takesAll);
  const own: Platform["own"] = { role: "edge", supervised, channel, passesAll };
  const { reload, announceEnd, giveBack, close } = await start<typeof edgeCapabilities>(edgeCapabilities, {
    config,
    logger,
    apiChecks: {},
    reserved,
    own,
  });
  return { reload, announceEnd, giveBack, close };
}
