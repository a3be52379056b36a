import { setFlagsFromString } from "node:v8";
import { pino } from "pino";
import { Cells } from "../../src/cells/cells.ts";
import { cellDefaults } from "../../src/cells/settings.ts";
import { AddressPolicy, createEdge, edgeDefaults, EdgeSnapshot, EdgeZone } from "../../src/edge/index.ts";
import { Origins } from "../../src/edge/origins.ts";
import { Outbound } from "../../src/edge/outbound.ts";
import { systemLookUp } from "../../src/edge/resolve.ts";
import { Rulesets } from "../../src/rulesets/rulesets.ts";
import { snippetHandler } from "../../src/snippets/chain.ts";
import { Snippets } from "../../src/snippets/snippets.ts";
import { openStorage } from "../../src/storage/storage.ts";

/** The edge with one zone, which has no snippets; `with` what runs those of other zones, or `without`. Prints its port. */
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
process.stdout.write(String((await edge.listen("127.0.0.1", 0)).port));

async function snippets(): Promise<ReturnType<typeof snippetHandler>> {
  const storage = await openStorage("sqlite::memory:");
  const bodyBytesMax = 1e9;
  return snippetHandler({
    snippets: new Snippets(storage, new Rulesets(storage)),
    cells: new Cells(cellDefaults, logger),
    outbound: new Outbound(new Origins(edgeDefaults, policy, "script"), systemLookUp(), edgeDefaults),
    limits: { cpuMs: 50, memoryBytes: 64 * 1024 * 1024, bodyBytesMax },
    logger,
  });
}
