import type { Logger } from "pino";
import type { Capability, Platform } from "./capability.ts";
import { edgeCapabilities } from "./edge-capabilities.ts";
import type { Config } from "./platform/config/settings.ts";
import type { Reserved } from "./platform/listen/reserve.ts";
import { MainChannel } from "./platform/processes/main-channel.ts";
import type { Supervised } from "./platform/processes/supervised.ts";
import type { Declaration } from "./declaration.ts";
import { declarations } from "./declarations.ts";
import { start } from "./start.ts";
import type { BindingTypeName } from "./workers/bindings.ts";
import type { BindingRegistry } from "./workers/binding-registry.ts";
import type { RunningServer } from "./server.ts";

/**
 * Starts an edge process, which serves visitors and reads the database that main writes. Waits for main first, and calls
 * `joined` when that wait has ended or failed.
 */
export async function startEdgeProcess(
  config: Config,
  logger: Logger,
  supervised: Supervised,
  reserved: Reserved,
  joined: () => void,
): Promise<Pick<RunningServer, "reload" | "announceEnd" | "giveBack" | "close">> {
  const channel = new MainChannel(supervised.folder, supervised.id, logger);
  await channel.join().finally(joined); // main may still have to create the database
  const passesAll = edgeCapabilities.some(({ takesAll }: Capability) => takesAll);
  const own: Platform["own"] = { role: "edge", supervised, channel, passesAll };
  const { services, reload, announceEnd, giveBack, close } = await start<typeof edgeCapabilities>(
    edgeCapabilities,
    {
      config,
      logger,
      apiChecks: {},
      reserved,
      own,
    },
  );
  refuseMissing(services.bindings);
  return { reload, announceEnd, giveBack, close };
}

/** Throws if edge processes lack a declared type of bindings: scripts with such a binding could not be loaded here. */
function refuseMissing(known: BindingRegistry): void {
  for (const { bindings: declared } of declarations as readonly Declaration[])
    for (const name of Object.keys(declared))
      if (known.find(name as BindingTypeName) === undefined)
        throw new Error(`Expected bindings of type ${name} in edge processes`);
}
