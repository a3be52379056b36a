import { capability } from "../../capability.ts";
import { rulesets } from "../../control/rulesets/capability.ts";
import { zoneSettings } from "../../control/zone-settings/capability.ts";
import { edgeServer } from "../../edge/capability.ts";
import { clientInfo } from "../../edge/client-info/capability.ts";
import { edgeConfiguration } from "../../edge/configuration/capability.ts";
import { scripts } from "../../workers/scripts/capability.ts";
import { ScriptRouting } from "./script-routing.ts";

/** Shows which settings, rules and routes act on a request, and the value of each part of their expressions. */
export const requestTracer = capability({
  name: "request tracer",
  needs: [rulesets, zoneSettings, edgeConfiguration, clientInfo, edgeServer, scripts],
  create: (needed) => ({
    requestTracer: {
      configuration: {
        rulesets: needed.rulesets,
        zoneSettings: needed.zoneSettings,
        routing: new ScriptRouting(needed.scriptRouter, needed.routes, needed.domains),
        edge: needed.edge,
      },
      snapshot: needed.snapshot,
      requestCf: needed.requestCf,
      edgeAddress: (scheme: "http" | "https") =>
        (scheme === "https" ? needed.edgeTlsListener : needed.edgeListener).address,
    },
  }),
  operations: async () => (await import("./api.ts")).requestTracerOperations,
});
