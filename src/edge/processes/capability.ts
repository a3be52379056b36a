import { capability } from "../../capability.ts";
import { accessLogs } from "../../platform/access-log/capability.ts";
import { requestPath } from "../../platform/processes/protocol.ts";
import { tracing } from "../../platform/tracing/capability.ts";
import { edgeServer } from "../capability.ts";
import { outbound } from "../origin/capability.ts";
import { ToMain } from "./to-main.ts";

/** In edge processes: passes requests on to main. */
export const toMain = capability({
  name: "requests to main",
  processes: "edge",
  needs: [outbound, edgeServer, tracing],
  create({ own, edgeSettings, origins, tracer }) {
    if (own.role !== "edge") throw new Error("Expected an edge process");
    return { toMain: new ToMain(own.supervised.folder, edgeSettings, origins, tracer) };
  },
  edgeHandlers({ own, ...services }) {
    const passesAll = own.role === "edge" && own.passesAll;
    return passesAll ? [{ phase: "relay", ...services.toMain.when(() => true) }] : [];
  },
  close: (services) => services.toMain.close(),
});

/** In main: serves the requests that edge processes pass on. */
export const fromEdges = capability({
  name: "requests from edge processes",
  needs: [accessLogs, outbound, edgeServer],
  create: () => ({}),
  async listen({ own, edge, edgeSettings, edgeLog }) {
    if (own.role !== "main") return;
    const { serveFromEdges } = await import("./from-edges.ts");
    return serveFromEdges(requestPath(own.supervised.folder), edge, edgeSettings, edgeLog);
  },
});
