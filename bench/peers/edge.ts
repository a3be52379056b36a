import { setFlagsFromString } from "node:v8";
import { pino } from "pino";
import { RunAdmission } from "../../src/sandbox/limits/admission.ts";
import { Cells } from "../../src/sandbox/cells.ts";
import { admissionLimits, cellDefaults } from "../../src/sandbox/settings.ts";
import {
  AddressPolicy,
  createEdge,
  edgeDefaults,
  EdgeSnapshot,
  EdgeZone,
} from "../../src/edge/request/edge.ts";
import { Origins } from "../../src/edge/origin/origins.ts";
import { Outbound } from "../../src/edge/origin/outbound.ts";
import { OutboundSockets } from "../../src/edge/origin/outbound-sockets.ts";
import { systemLookUp } from "../../src/edge/origin/resolve.ts";
import { ViaHeader } from "../../src/edge/http/via.ts";
import { Rulesets } from "../../src/control/rulesets/rulesets.ts";
import { snippetHandler } from "../../src/products/snippets/chain.ts";
import { Snippets } from "../../src/products/snippets/snippets.ts";
import { openStorage } from "../../src/platform/storage/storage.ts";

/** The edge with one zone that has no snippets, `with` or `without` the snippet runtime. Prints its port. */
const [kind, originPort] = process.argv.slice(2);
setFlagsFromString("--external-memory-accounted-in-global-limit"); // as bin/selvedge.js does
process.once("SIGTERM", () => process.exit(0));

const zone = new EdgeZone("z", "bench.example", false);
zone.setHost("www.bench.example", { isProxied: true, targets: [{ type: "A", content: "127.0.0.1" }] });
zone.originRules = [{ matches: () => true, port: Number(originPort) }];
const snapshot = new EdgeSnapshot();
snapshot.add(zone);
const logger = pino({ level: "silent" });
const policy = new AddressPolicy("origins");
const edge = createEdge({
  settings: edgeDefaults,
  snapshot,
  policy,
  logger,
  handlers: kind === "with" ? [await snippets()] : [],
});
process.stdout.write(String((await edge.listen({ host: "127.0.0.1", port: 0 })).port));

async function snippets(): Promise<ReturnType<typeof snippetHandler>> {
  const storage = await openStorage("sqlite::memory:");
  const bodyBytesMax = 1e9;
  return snippetHandler({
    snippets: new Snippets(storage, new Rulesets(storage)),
    cells: new Cells(cellDefaults, logger),
    subrequests: new RunAdmission(admissionLimits(cellDefaults, 2000)),
    outbound: new Outbound(
      new Origins(edgeDefaults, policy, "script"),
      systemLookUp(),
      edgeDefaults,
      new ViaHeader("key"),
      new OutboundSockets(new Origins(edgeDefaults, policy, "socket"), systemLookUp(), edgeDefaults),
    ),
    answerImageFetch: async () => {}, // no snippet runs here
    isAuthor: () => false,
    limits: { cpuMs: 50, memoryBytes: 64 * 1024 * 1024, bodyBytesMax, treeSubRequests: 1000 },
    logger,
  });
}
