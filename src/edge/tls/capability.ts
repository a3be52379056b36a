import { existsSync } from "node:fs";
import { capability } from "../../capability.ts";
import { zoneSettings } from "../../control/zone-settings/capability.ts";
import { dataFolder, reservation, storage } from "../../platform/capability.ts";
import { edgeConfiguration } from "../configuration/capability.ts";
import { outbound } from "../origin/capability.ts";
import { addressInfoOf } from "../../platform/own-listener.ts";
import { isEdge, isMain } from "../../platform/processes/own-process.ts";
import { edgeServer } from "../capability.ts";
import { certificates } from "./certificates/capability.ts";
import { authorityFiles } from "./certificates/authority-files.ts";
import { schemeHandler } from "./scheme-handler.ts";
import { TicketKeys } from "./ticket-keys.ts";
import { declaration } from "./declaration.ts";
import { TlsCounts } from "./tls-counts.ts";

/** The listener of TLS, which passes requests to the edge. */
export const tls = capability({
  name: "TLS",
  processes: "all",
  declares: declaration,
  needs: [
    reservation,
    storage,
    dataFolder,
    zoneSettings,
    certificates,
    edgeConfiguration,
    outbound,
    edgeServer,
  ],
  create: ({ config, folder, storage: database }) => ({
    ticketKeys: new TicketKeys(database),
    // An ephemeral start uses the local authority of the data folder, if there is one, because users may trust it.
    authorityDir: existsSync(authorityFiles(config.dataDir).certificate) ? config.dataDir : folder,
    tlsCounts: new TlsCounts(),
  }),
  metrics: async ({ edge, tlsCounts }) => (await import("./metrics.ts")).tlsMetrics(edge, tlsCounts),
  async load({ config, own, ticketKeys }) {
    if (config.edgeTlsListen === undefined) return;
    if (isMain(own)) await ticketKeys.renew();
    await ticketKeys.load();
  },
  run: ({ config, ticketKeys, logger }) =>
    config.edgeTlsListen === undefined ? undefined : ticketKeys.keepNew(logger),
  edgeHandlers({ config, edgeListener, edgeTlsListener, ...services }) {
    if (config.edgeTlsListen === undefined) return [];
    const ports: Record<"http" | "https", number | undefined> = { http: undefined, https: undefined };
    edgeListener.onListening(({ port }) => (ports.http = port));
    edgeTlsListener.onListening(({ port }) => (ports.https = port));
    return [{ phase: "scheme", handler: schemeHandler(services.zoneSettings, () => ports) }];
  },
  async listen({ config, own, sockets, edgeTlsListener, edgeSettings, ...services }) {
    if (config.edgeTlsListen === undefined) return;
    if (!isEdge(own)) {
      const { openLocalAuthority } = await import("./certificates/local-authority.ts");
      openLocalAuthority(services.authorityDir); // edge processes only read it
      edgeTlsListener.listensAt(addressInfoOf(config.edgeTlsListen));
      return;
    }
    const { startTls } = await import("./start.ts");
    const mainChannel = own.role === "edge" ? own.channel : undefined;
    const listener = await startTls({ ...services, config, settings: edgeSettings, mainChannel });
    edgeTlsListener.listensAt(await listener.listen(sockets.take("edgeTlsListen")));
    return listener;
  },
});
