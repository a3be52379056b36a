import { capability } from "../../capability.ts";
import { tokens } from "../../control/tokens/capability.ts";
import { isOnLoopback } from "../../platform/config/derived.ts";
import { tracing } from "../../platform/tracing/capability.ts";
import { ownListeners } from "../../platform/capability.ts";
import { edgeSettingsOf } from "../http/settings.ts";
import { ViaHeader } from "../http/via.ts";
import { AddressPolicy, type Who } from "./address-policy.ts";
import { Origins } from "./origins.ts";
import { OutboundSockets } from "./outbound-sockets.ts";
import { Outbound } from "./outbound.ts";
import { systemLookUp } from "./resolve.ts";
import type { OriginsUnderTest } from "./under-test.ts";
import { declaration } from "./declaration.ts";

/** Connections to origins, of the edge and of scripts, and the addresses that they may go to. */
export const outbound = capability({
  name: "outbound",
  processes: "all",
  declares: declaration,
  needs: [tokens, ownListeners, tracing],
  async create({ config, own, ...needed }) {
    const settings = await edgeSettingsOf(config);
    // The setting is for the whole node, so each edge process gets its share.
    if (own.role === "edge")
      settings.originConnectionsMax = Math.ceil(settings.originConnectionsMax / config.edgeProcesses);
    const policy = new AddressPolicy(config.privateNetworks ?? (isOnLoopback(config) ? "origins" : "deny"));
    for (const listener of [needed.apiListener, needed.metricsListener, needed.dnsListener])
      listener.onListening(({ port }) => policy.forbidListener(port));
    const originsUnderTest: OriginsUnderTest = { hooks: undefined };
    const lookUp = systemLookUp(undefined, undefined, originsUnderTest);
    const origins = (who: Who) => new Origins(settings, policy, who, originsUnderTest);
    const viaHeader = new ViaHeader(needed.tokens.hash("hops of scripts' requests"));
    const { tracer } = needed;
    tracer?.signWith(needed.tokens.hash("traces between parts of the platform"));
    const sockets = new OutboundSockets(origins("socket"), lookUp, settings);
    return {
      edgeSettings: settings,
      policy,
      viaHeader,
      originsUnderTest,
      origins: origins("origin"),
      outbound: new Outbound(origins("script"), lookUp, settings, viaHeader, sockets, tracer),
    };
  },
  metrics: async (services) =>
    (await import("./socket-metrics.ts")).socketMetrics(() => services.outbound.sockets.counts),
  close: (services) => services.outbound.close(),
});
