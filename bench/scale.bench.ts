import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { EdgeSnapshot, EdgeZone } from "../src/edge/snapshot.ts";
import { openStorage } from "../src/storage/storage.ts";
import { newId } from "../src/util/ids.ts";
import { startSelvedge } from "./lib/child.ts";
import {
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  residentMegabytes,
  reported,
} from "./lib/measure.ts";

/** 100,000 records over 1,000 zones: how long a start takes, what it costs in memory, and what a look-up costs. */
const zoneCount = 1000;
const recordsPerZone = 100;

async function fill(path: string): Promise<void> {
  const storage = await openStorage(`sqlite:${path}`);
  const now = Date.now();
  const accountId = newId();
  await storage.write(async (trx) => {
    await trx
      .insertInto("accounts")
      .values({ id: accountId, name: "a", type: "standard", settings: "{}", has_billing: 1, created_on: now })
      .execute();
    for (let z = 0; z < zoneCount; z++) {
      const id = newId();
      const name = `zone-${z}.example`;
      await trx
        .insertInto("zones")
        .values({
          id,
          account_id: accountId,
          name,
          type: "full",
          status: "active",
          paused: 0,
          plan: "enterprise",
          name_servers: "[]",
          vanity_name_servers: "[]",
          verification_key: null,
          smart_routing: "off",
          smart_routing_modified_on: null,
          serial: 1,
          record_count: recordsPerZone,
          created_on: now,
          modified_on: now,
          activated_on: now,
          checked_on: null,
        })
        .execute();
      const rows = Array.from({ length: recordsPerZone }, (_, r) => ({
        id: newId(),
        zone_id: id,
        type: "A",
        name: `host-${r}.${name}`,
        content: "192.0.2.1",
        data: null,
        priority: null,
        ttl: 1,
        proxied: 1 as const,
        settings: "{}",
        comment: null,
        tags: "[]",
        created_on: now,
        modified_on: now,
        comment_modified_on: null,
        tags_modified_on: null,
      }));
      await trx.insertInto("dns_records").values(rows).execute();
    }
  });
  await storage.close();
}

function snapshot(zones: number): EdgeSnapshot {
  const made = new EdgeSnapshot();
  for (let z = 0; z < zones; z++) {
    const zone = new EdgeZone(newId(), `zone-${z}.example`, false);
    for (let r = 0; r < recordsPerZone; r++) {
      zone.setHost(`host-${r}.${zone.name}`, {
        isProxied: true,
        targets: [{ type: "A", content: "192.0.2.1" }],
      });
    }
    made.add(zone);
  }
  return made;
}

/** Nanoseconds of a look-up of hosts that are asked for in turn, as strings that were just parsed are. */
function lookUp(from: EdgeSnapshot, zones: number): number {
  const count = 200_000;
  const hosts = Array.from(
    { length: 1024 },
    (_, i) => `host-${(i * 7) % recordsPerZone}.zone-${(i * 13) % zones}.example`,
  );
  const start = process.hrtime.bigint();
  let found = 0;
  for (let i = 0; i < count; i++) {
    const host = hosts[i & 1023]!;
    if (from.findZone(host)?.resolve(host) !== undefined) found += 1;
  }
  const nanoseconds = Number(process.hrtime.bigint() - start) / count;
  if (found !== count) throw new Error("a host was not found");
  return nanoseconds;
}

const empty = await startSelvedge();
const emptyMegabytes = residentMegabytes(empty.pid);
await empty.stop();

const folder = join(process.cwd(), "data", `bench-${process.pid}`);
mkdirSync(folder, { recursive: true });
await fill(join(folder, "selvedge.db"));
const start = performance.now();
const full = await startSelvedge(["--database-url", `sqlite:${join(folder, "selvedge.db")}`]);
const seconds = (performance.now() - start) / 1000;
const megabytes = residentMegabytes(full.pid);
const cpuSeconds = cpuMicroseconds(full.pid) / 1e6;
await full.stop();

const [small, large] = [snapshot(10), snapshot(zoneCount)];
const times: { small: number[]; large: number[] } = { small: [], large: [] };
for (let round = 0; round < 15; round++) {
  times.small.push(lookUp(small, 10));
  times.large.push(lookUp(large, zoneCount));
}
printGoals([
  atMost("start to ready with 100,000 records over 1,000 zones, s", seconds, 3),
  reported("CPU of that start, s", cpuSeconds),
  reported("memory, empty, MB", emptyMegabytes),
  reported("memory, 100,000 records, MB", megabytes),
  reported("look-up with 1,000 zones, ns", median(times.large)),
  atMost(
    "look-up with 1,000 zones / with 10 zones",
    pairedRatio(times.large.slice(3), times.small.slice(3)),
    1.5,
  ),
]);
